// Token ids by llama.cpp, through the npm package node-llama-cpp; special tokens spelled in the texts stay text.
// usage: node tokens.mjs PACKAGE_FOLDER MODEL.gguf '["text", ...]'; prints a JSON array of arrays of ids.
import {createRequire} from "module";
import path from "path";
import {pathToFileURL} from "url";

const [folder, model_path, texts] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), "package.json"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const llama = await getLlama({build: "never", gpu: false, logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath: model_path, vocabOnly: true});
console.log(JSON.stringify(JSON.parse(texts).map((text) => Array.from(model.tokenize(text, false)))));
await llama.dispose();
