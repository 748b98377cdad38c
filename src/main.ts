#!/usr/bin/env node
/**
 * The entry point of the program; cli/ has everything else. An old Node must be able to read this file, to say which one is needed: it
 * imports nothing before that, and has no syntax that is younger than `import()`.
 *
 * Compiled code is cached for the next start, also of worker threads: importing the program takes 78 ms of processor time instead of 110. It is kept
 * beside the packages, never in a folder that other users can write, because V8 trusts it; without write permission there is none.
 */
const needed = [24, 7] as const;

async function run(): Promise<void> {
  const { enableCompileCache } = await import('node:module');
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    process.env.NODE_COMPILE_CACHE = `${import.meta.dirname}/../node_modules/.cache/comity/program`;
  }
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
  // Imported last, so that the cache applies to what this imports.
  const { runProgram } = await import('./cli/program.ts');
  const { openTerminal } = await import('./cli/terminal.ts');
  process.exit(await runProgram(process.argv.slice(2), openTerminal(process.env, process)));
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major > needed[0] || (major === needed[0] && minor >= needed[1])) void run();
else {
  process.stderr.write(
    `comity: needs Node ${needed.join('.')} or later, and this is ${process.versions.node}\n`,
  );
  process.exitCode = 1;
}
