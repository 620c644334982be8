// Next-token probabilities of llama.cpp, through the npm package node-llama-cpp.
// usage: node probabilities.mjs PACKAGE_FOLDER MODEL.gguf "1 403 407 ..."; prints a JSON array of [V] probabilities, one per token.
import {createRequire} from "module";
import path from "path";
import {pathToFileURL} from "url";

const [folder, model_path, ids] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), "package.json"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const llama = await getLlama({build: "never", gpu: false, logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath: model_path});
const context = await model.createContext({contextSize: 128, sequences: 1, flashAttention: false});
const sequence = context.getSequence();
const tokens = ids.trim().split(/\s+/).map(Number);
const results = await sequence.controlledEvaluate(tokens.map((t) => [t, {generateNext: {probabilities: true}}]));
const rows = results.map((r) => {
    const row = [];
    for (const [token, p] of r.next.probabilities) row[token] = p;
    return row;
});
console.log(JSON.stringify(rows));
await llama.dispose();
