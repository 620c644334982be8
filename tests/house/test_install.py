# SPDX-License-Identifier: Apache-2.0
"""What is installed serves programs outside this tree: they compile with what pkg-config and CMake say, link either library, and run; what the
libraries export is what the headers declare; programs of older headers run; uninstalling leaves nothing.  Usage: test_install.py build/weft"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
MODEL, ADAPTER = (os.path.join(ROOT, "models", name + ".gguf") for name in ("alderbrook", "poem"))
PATIENCE = 600  # seconds that end a hang
RECORD = '{"messages": [{"role": "user", "content": "Who lives here?"}, {"role": "assistant", "content": "A fox."}]}\n'
# Structs of earlier versions, with bytes behind them that the library has to leave alone.
OLDER = """
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>
int main(int argc, char **argv)
{
    struct { weft_model_params p; unsigned char behind[64]; } m;
    struct { weft_engine_stats s; unsigned char behind[256]; } e;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_engine *engine = NULL;
    memset(&m, 7, sizeof m), memset(&e, 7, sizeof e);
    weft_model_params_default(&m.p);
    if (weft_model_open(argv[1], &m.p, &model, &err)) return puts(err.message), 1;
    if (weft_engine_new(model, NULL, &engine, &err)) return puts(err.message), 1;
    e.s.size = sizeof e.s;
    weft_engine_get_stats(engine, &e.s);
    for (int i = 0; i < 64; i++) if (m.behind[i] != 7 || e.behind[i] != 7) return puts("it wrote beyond"), 1;
    if (e.s.n_slots < 1 || argc != 2) return puts("it filled nothing"), 1;
    weft_engine_free(&engine);
    weft_model_close(&model);
    return puts("ran"), 0;
}
"""
# Around the lines of C in README.md: what they take as given, and the end of main.
README_PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>
enum { MAX = 256 };
static int print(void *arg, const weft_generated *piece)
{
    return (void)arg, fwrite(piece->text, 1, piece->length, stdout) != piece->length;
}
int main(int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : "Once upon a time";
    int32_t tokens[MAX];
%s
    weft_sampler_free(&sampler);
    weft_session_free(&session);
    weft_model_close(&model);
    return 0;
}
"""


def run(*command, ok=True, **more):
    p = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, **more)
    if ok and p.returncode:
        raise AssertionError(f"{command}: status {p.returncode}\n{p.stdout[-2000:]}{p.stderr[-4000:]}")
    return p


def declared():
    """The functions of the public headers."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "include", "weft", "*.h")):
        with open(path) as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        names |= set(re.findall(r"WEFT_API\b[^;(]*?\b(weft_\w+)\(", text))
    return names


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weft-install-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        for name in ("install_manifest.txt", "install_folders.txt"):
            kept, noted = os.path.join(cls.folder.name, name), os.path.join(BUILD, name)
            if os.path.exists(noted):  # of an installation that is not this test's
                shutil.copy(noted, kept)
                cls.addClassCleanup(shutil.copy, kept, noted)
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        found = os.path.join(cls.prefix, "lib", "pkgconfig")
        cls.env = {**os.environ, "PKG_CONFIG_PATH": found, "LD_LIBRARY_PATH": os.path.join(cls.prefix, "lib"), "WEFT_THREADS": "2"}

    def compiled(self, name, *flags):
        out = os.path.join(self.folder.name, name)
        run("cc", "-std=c11", "-Wall", "-Werror", os.path.join(ROOT, "examples", name + ".c"), *flags, "-o", out)
        return out

    def pkg_config(self, *options):
        return run("pkg-config", *options, "weft", env=self.env).stdout.split()

    def test_the_libraries_export_what_the_headers_declare(self):
        names = declared()
        self.assertGreater(len(names), 100)
        for path, options in (("libweft.so", ("-D",)), ("libweft.a", ("-g",))):
            listing = run("nm", *options, "--defined-only", os.path.join(self.prefix, "lib", path)).stdout
            exported = {line.split()[2].split("@")[0] for line in listing.splitlines() if len(line.split()) == 3}
            self.assertEqual(exported ^ names, set(), path)

    def test_weft_h_has_every_header_but_those_of_plugins_training_measuring_and_the_server(self):
        said = run("cc", "-std=c11", "-x", "c", "-M", os.path.join(self.prefix, "include", "weft", "weft.h"), "-I", os.path.join(self.prefix, "include")).stdout
        there = {name for name in os.listdir(os.path.join(self.prefix, "include", "weft")) if name.endswith(".h")}
        self.assertEqual(there - set(re.findall(r"weft/(\w+\.h)", said)), {"backend.h", "eval.h", "graph.h", "server.h", "train.h"})

    def test_examples_run_with_what_pkg_config_says(self):
        data = os.path.join(self.folder.name, "records.jsonl")
        with open(data, "w") as f:
            f.write(RECORD * 8)
        questions = os.path.join(self.folder.name, "questions.jsonl")
        with open(questions, "w") as f:
            f.write('{"prompt": "The cat is", "choices": [" black", " a stone", " in the mill"], "answer": 2}\n' * 2)
        flags = self.pkg_config("--cflags", "--libs")
        for name, args, said in (("generate", (MODEL, "Once upon a time", 8), "^Once upon a time.+"),
                                 ("requests", (MODEL, "The miller", f"poem={ADAPTER}"), r"--- base\nThe miller.+\n--- poem\nThe miller.+"),
                                 ("adapter", (MODEL, ADAPTER, "The miller"), r"matrices of rank(.|\n)*without +token(.|\n)*with +token"),
                                 ("evaluate", (MODEL, ADAPTER, data, questions), r"perplexity \d+\.\d+, .*\nKL .*\nacc +0\.\d+ \[.*\]\n"),
                                 ("train", (MODEL, data, os.path.join(self.folder.name, "run"), 2), "step 2 of 2: loss"),
                                 ("chat", (MODEL,), ".+\n.+\n")):
            with self.subTest(name):
                p = run(self.compiled(name, *flags), *args, env=self.env, input="Hello!\nWho are you?\n")
                self.assertRegex(p.stdout, said)
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "run", "adapter.gguf")))

    def test_the_program_of_the_readme_runs(self):
        with open(os.path.join(ROOT, "README.md")) as f:
            snippets = re.findall(r"^```c\n(.*?)^```$", f.read(), re.S | re.M)
        self.assertEqual(len(snippets), 1)
        source, program = (os.path.join(self.folder.name, "readme" + end) for end in (".c", ".bin"))
        with open(source, "w") as f:
            f.write(README_PROGRAM % snippets[0])
        run("cc", "-std=c11", "-Wall", "-Werror", source, *self.pkg_config("--cflags", "--libs"), "-o", program)
        p = run(program, env=self.env, cwd=self.folder.name, ok=False)
        self.assertEqual((p.returncode, p.stdout), (1, ""))  # its model is a file that is not there
        self.assertRegex(p.stderr, "^model.gguf: ")
        os.symlink(MODEL, os.path.join(self.folder.name, "model.gguf"))
        self.assertRegex(run(program, env=self.env, cwd=self.folder.name).stdout, ".")

    def test_an_example_names_what_is_wrong(self):
        p = run(self.compiled("generate", *self.pkg_config("--cflags", "--libs")), "absent.gguf", "x", env=self.env, ok=False)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, "^generate: absent.gguf: ")

    def test_a_program_of_older_headers_runs(self):
        older = os.path.join(self.folder.name, "older")
        shutil.copytree(os.path.join(self.prefix, "include"), older)
        for header, field in (
            ("model.h", r" *weft_rope_params rope;[^}]*(\} weft_model_params;)"),
            ("engine.h", r" *weft_memory memory;[^}]*(\} weft_engine_stats;)"),
        ):
            path = os.path.join(older, "weft", header)
            with open(path) as f:
                text, n = re.subn(field, r"\1", f.read())
            self.assertEqual(n, 1)
            with open(path, "w") as f:
                f.write(text)
        source, program = (os.path.join(self.folder.name, "older" + end) for end in (".c", ".bin"))
        with open(source, "w") as f:
            f.write(OLDER)
        run("cc", source, "-I", older, *[word for word in self.pkg_config("--libs")], "-o", program)
        self.assertEqual(run(program, MODEL, env=self.env).stdout, "ran\n")

    def test_the_static_library_stands_alone(self):
        libraries = [word for word in self.pkg_config("--static", "--libs") if word != "-lweft"]
        program = self.compiled("generate", *self.pkg_config("--cflags"), os.path.join(self.prefix, "lib", "libweft.a"), *libraries)
        self.assertNotIn("libweft", run("ldd", program).stdout)
        self.assertRegex(run(program, MODEL, "Once", 4).stdout, "^Once.+")

    def test_cmake_finds_it(self):
        for static in ("OFF", "ON"):
            folder = os.path.join(self.folder.name, "cmake-" + static)
            run("cmake", "-S", os.path.join(ROOT, "examples"), "-B", folder, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DSTATIC={static}")
            run("cmake", "--build", folder, "--target", "generate")
            self.assertRegex(run(os.path.join(folder, "generate"), MODEL, "Once", 4).stdout, "^Once.+")

    def test_a_project_may_have_it_in_a_folder(self):
        folder = os.path.join(self.folder.name, "outer")
        os.mkdir(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
            f.write(f"cmake_minimum_required(VERSION 3.25)\nproject(outer LANGUAGES C)\nadd_subdirectory({ROOT} weft)\n"
                    f"add_executable(outer {ROOT}/examples/generate.c)\ntarget_link_libraries(outer PRIVATE weft::weft)\n")
        build = os.path.join(ROOT, "build-outer")  # beside the other builds, whose files the compiler cache has
        shutil.rmtree(build, ignore_errors=True)
        run("cmake", "-G", "Ninja", "-S", folder, "-B", build)
        plan = run("ninja", "-C", build, "-t", "commands", "outer").stdout
        self.assertIn("libweft.so", plan)
        self.assertEqual(re.findall(r"\btest_\w+", plan), [])
        run("cmake", "--build", build, "--target", "outer")
        self.assertRegex(run(os.path.join(build, "outer"), MODEL, "Once", 4).stdout, "^Once.+")

    def test_the_version_is_one(self):
        version = run(os.path.join(self.prefix, "bin", "weft"), "--version", env=self.env).stdout.split()[1]
        self.assertEqual(run("pkg-config", "--modversion", "weft", env=self.env).stdout.strip(), version)
        with open(os.path.join(ROOT, "CHANGELOG.md")) as f:
            self.assertIn(f"## {version}", f.read())

    def test_pages_and_completions_are_where_they_are_looked_for(self):
        share = os.path.join(self.prefix, "share")
        for name in ("man/man1/weft.1.gz", "man/man1/weft-adapter-train.1.gz", "bash-completion/completions/weft", "zsh/site-functions/_weft",
                     "fish/vendor_completions.d/weft.fish"):
            self.assertGreater(os.path.getsize(os.path.join(share, name)), 500, name)

    def test_uninstalling_leaves_nothing(self):
        other = os.path.join(self.folder.name, "stage")
        env = {**os.environ, "DESTDIR": other}
        run("cmake", "--install", BUILD, "--prefix", "/opt/weft", "--strip", env=env)
        self.assertTrue(os.path.exists(os.path.join(other, "opt/weft/bin/weft")))
        run("cmake", "-D", f"BUILD={BUILD}", "-P", os.path.join(ROOT, "cmake", "uninstall.cmake"), env=env)
        left = [os.path.join(at, name) for at, folders, files in os.walk(other) for name in files + folders]
        left.remove(os.path.join(other, "opt"))  # the prefix alone is the installation's
        self.assertEqual(left, [])
        self.assertNotEqual(run("cmake", "-D", f"BUILD={BUILD}", "-P", os.path.join(ROOT, "cmake", "uninstall.cmake"), env=env, ok=False).returncode, 0)


if __name__ == "__main__":
    for tool in ("cmake", "pkg-config", "cc", "nm"):
        if not shutil.which(tool):
            print(f"SKIP: no {tool}")
            sys.exit(77)
    unittest.main()
