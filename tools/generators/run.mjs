// Runs the recipes of docs/generated-clients.md: generates a client with each, compiles it, and runs a flow with it
// against the program. The arguments are the names of recipes; without any, all run. ROLECALL_PROGRAM names the program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { patience } from "../patience.mjs";
import { brandColor, startProgram } from "./program.mjs";

// The SHA-256 sum of the archive of openapi-generator on Maven Central.
const openapiGenerator = { version: "7.17.0", sum: "25d6bd8273dd2be99979d544b62ea43f0ce1975f1aa582678b5093d1e7fcfce8" };

const here = import.meta.dirname;
const generated = join(here, ".generated");
const bin = join(generated, "bin");

/**
 * The recipes, by the name of the folder in which they run. A recipe is the line of the document that contains the
 * words. The other commands run in this folder. Those that take longest are first.
 */
const recipes = {
  rust: {
    words: " -g rust ",
    compile: ["cargo", "build", "--quiet", "--locked", "--manifest-path", "rust/Cargo.toml", "--target-dir", ".generated/rust/target"],
    flow: [".generated/rust/target/debug/flow"],
  },
  java: {
    words: " -g java ",
    compile: ["mvn", "--quiet", "--batch-mode", "--file", "java/pom.xml", "compile", "dependency:copy-dependencies"],
    flow: ["java", "-cp", [".generated/java/target/classes", ".generated/java/target/lib/*"].join(delimiter), "java/Flow.java"],
  },
  go: { words: " -g go ", compile: ["go", "build", "-o", ".generated/go/flow", "./go"], flow: [".generated/go/flow"] },
  "oapi-codegen": {
    words: "oapi-codegen ",
    compile: ["go", "build", "-o", ".generated/oapi-codegen/flow", "./oapi-codegen"],
    flow: [".generated/oapi-codegen/flow"],
  },
  "typescript-fetch": {
    words: " -g typescript-fetch ",
    compile: ["tsc", "-p", "typescript-fetch"],
    flow: ["node", ".generated/typescript-fetch/build/typescript-fetch/flow.js"],
  },
  "openapi-typescript": {
    words: "openapi-typescript ",
    compile: ["tsc", "-p", "openapi-fetch"],
    flow: ["node", ".generated/openapi-typescript/build/openapi-fetch/flow.js"],
  },
  python: {
    words: "openapi-python-client ",
    compile: ["python", "-m", "compileall", "-q", ".generated/python/rolecall-client"],
    flow: ["python", "python/flow.py"],
  },
};

const environment = {
  ...process.env,
  PATH: [bin, join(here, "node_modules/.bin"), join(here, ".venv/bin"), process.env.PATH].join(delimiter),
  PYTHONPATH: join(generated, "python/rolecall-client"),
};

/** run runs a command, and throws with its output if it fails. */
function run(cwd, [file, ...words]) {
  return new Promise((resolve, reject) => {
    execFile(file, words, { cwd, env: environment, maxBuffer: 1 << 26, timeout: 20 * patience }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} ${words.join(" ")}: ${error.code ?? error.signal}\n${(stdout + stderr).slice(-5000)}`));
      else resolve();
    });
  });
}

/** blocks returns the code of the document in the language. */
function blocks(document, language) {
  return [...document.matchAll(new RegExp("```" + language + "\n(.*?)```", "gs"))].map((match) => match[1].trim());
}

/** checkVersions compares the versions in the table of the document with those that are installed. */
function checkVersions(document) {
  const packages = JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies;
  const pin = (file, pattern) => pattern.exec(readFileSync(join(here, file), "utf8"))[1];
  const pins = {
    "openapi-typescript": packages["openapi-typescript"],
    "openapi-fetch": packages["openapi-fetch"],
    "openapi-python-client": pin("requirements.txt", /^openapi-python-client==(.*)$/m),
    "oapi-codegen": pin("go.mod", /oapi-codegen\/v2 v(\S+)/),
    "openapi-generator": openapiGenerator.version,
  };
  const rows = [...document.matchAll(/^\| \[([a-z-]+)\]\(.*?\).* \| ([0-9.]+) \|/gm)].map((match) => [match[1], match[2]]);
  assert.deepEqual(Object.fromEntries(rows), pins, "docs/generated-clients.md names other versions than tools/generators");
}

/** installGenerator downloads openapi-generator from Maven Central once, and returns the path of its archive. */
async function installGenerator() {
  const { version, sum } = openapiGenerator;
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "rolecall");
  const archive = join(cache, `openapi-generator-cli-${version}.jar`);
  if (existsSync(archive)) return archive;
  const response = await fetch(`https://repo.maven.apache.org/maven2/org/openapitools/openapi-generator-cli/${version}/openapi-generator-cli-${version}.jar`);
  if (!response.ok) throw new Error(`Maven Central responded with ${response.status}`);
  const content = Buffer.from(await response.arrayBuffer());
  if (createHash("sha256").update(content).digest("hex") !== sum) throw new Error("the archive of openapi-generator has another checksum");
  mkdirSync(cache, { recursive: true });
  const partial = mkdtempSync(join(cache, "partial-"));
  writeFileSync(join(partial, "archive.jar"), content);
  renameSync(join(partial, "archive.jar"), archive);
  rmSync(partial, { recursive: true });
  return archive;
}

/** install puts the commands of the recipes that are not npm or Python packages into the folder bin. */
async function install() {
  const archive = await installGenerator();
  mkdirSync(bin, { recursive: true });
  const script = join(bin, "openapi-generator-cli");
  // The flags halve the time, most of which Java needs to compile itself.
  writeFileSync(script, `#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -jar '${archive}' "$@"\n`);
  chmodSync(script, 0o755);
  await run(here, ["go", "build", "-o", join(bin, "oapi-codegen"), "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"]);
}

/** prepare empties the folder of a recipe, but for what the compilers left there, and writes the inputs into it. */
async function prepare(name, naming, config) {
  const folder = join(generated, name);
  for (const result of ["rolecall", "rolecall-client", "rolecall.ts", "rolecall.gen.go"]) rmSync(join(folder, result), { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "openapi.yaml"), readFileSync(join(here, "../../openapi/openapi.yaml")));
  writeFileSync(join(folder, "oapi-codegen.yaml"), `${config}\n`);
  await run(folder, ["sh", "-ec", naming]);
  return folder;
}

const document = readFileSync(join(here, "../../docs/generated-clients.md"), "utf8");
checkVersions(document);
const [naming, commands] = blocks(document, "sh");
const [config] = blocks(document, "yaml");
const lines = commands.split("\n");
const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(recipes);
const plans = chosen.map((name) => {
  const found = lines.filter((line) => line.includes(recipes[name].words));
  assert.equal(found.length, 1, `docs/generated-clients.md has ${found.length} recipes for ${name}`);
  return { name, command: found[0], ...recipes[name] };
});
assert.equal(lines.length, Object.keys(recipes).length, "a recipe of docs/generated-clients.md has no flow");

await install();
const program = await startProgram(process.env.ROLECALL_PROGRAM, chosen);
let passed = 0, failed = 0;

/** play runs a recipe and its flow, and prints how many seconds each step took. */
async function play({ name, command, compile, flow }) {
  const times = [];
  const timed = async (step, work) => {
    const start = performance.now();
    await work();
    times.push(`${step} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  };
  try {
    const folder = await prepare(name, naming, config);
    await timed("generate", () => run(folder, ["sh", "-ec", command]));
    await timed("compile", () => run(here, compile));
    const before = await program.settings(name);
    await timed("flow", () => run(here, [...flow, program.address, name, program.email, program.password]));
    assert.deepEqual(await program.settings(name), { ...before, brandColor }, "the flow changed other settings than the color");
    passed++;
    console.log(`${name}: ${times.join(", ")}`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n${times.join(", ")}\n${error.stack.replaceAll(/\n\s*\n/g, "\n")}\n`);
  }
}

try {
  await Promise.all([1, 2].map(async () => {
    for (let plan; (plan = plans.shift()) !== undefined; ) await play(plan);
  }));
} finally {
  await program.stop();
}
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) process.exitCode = 1;
