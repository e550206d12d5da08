// Runs test files of node:test, each in its own process: node tools/nodetest.mjs [--concurrency=N] FILE...
// With ROLECALL_TEST_REPEAT=1, it runs a file that failed once more, alone. If the second run passes, it reports
// the file as FLAKY, and the run does not fail.

import { relative } from "node:path";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { stripVTControlCharacters } from "node:util";
import { patience } from "./patience.mjs";

const mostFailures = 5;
const shownLines = 30;
const words = process.argv.slice(2);
const concurrency = Number(words.find((word) => word.startsWith("--concurrency="))?.split("=")[1] ?? 1);
const files = words.filter((word) => !word.startsWith("--"));

/** play runs a file. It returns the counts of its tests, the names of those that failed, and its output. */
async function play(file) {
  const result = { file, passed: 0, skipped: 0, failed: [], output: "" };
  const events = run({ files: [file], concurrency: 1, timeout: 60 * patience });
  events.on("test:pass", ({ skip, details }) => {
    if (details.type !== "suite") result[skip === undefined ? "passed" : "skipped"]++;
  });
  events.on("test:fail", ({ name, details }) => {
    if (details.error?.failureType !== "subtestsFailed") result.failed.push(name);
  });
  await pipeline(events, new spec(), new Writable({
    write(text, _, done) {
      result.output += text;
      done();
    },
  }));
  process.stdout.write(result.output);
  return result;
}

/** report prints which tests of a result failed, and the end of the part of the output that says why. */
function report(word, { file, failed, output }) {
  for (const name of failed) console.log(`${word} ${relative("", file)} ${relative("", name) === relative("", file) ? "(outside of a test)" : name}`);
  const [all, errors] = stripVTControlCharacters(output).split("✖ failing tests:\n");
  const why = errors.includes("'test failed'") ? all : errors; // a process that ended by itself has only its own output
  console.log(why.trim().split("\n").slice(-shownLines).join("\n"));
}

const results = [];
const waiting = [...files];
await Promise.all(Array.from({ length: concurrency }, async () => {
  for (let file; (file = waiting.shift()) !== undefined; ) results.push(await play(file));
}));

const failures = results.filter(({ failed }) => failed.length > 0);
const isRepeated = process.env.ROLECALL_TEST_REPEAT === "1" && failures.length <= mostFailures;
for (const first of failures) {
  const second = isRepeated ? await play(first.file) : first;
  if (second.failed.length > 0) report("FAILED", second);
  else report("FLAKY", first);
  results[results.indexOf(first)] = second;
}
const count = (of) => results.reduce((sum, result) => sum + of(result), 0);
const failed = count((result) => result.failed.length);
const passed = count((result) => result.passed);
console.log(`${passed} passed, ${failed} failed, ${count((result) => result.skipped)} skipped`);
if (failed > 0 || passed === 0) process.exitCode = 1;
