#!/usr/bin/env node
/**
 * The entry point of the program; cli/ has everything else. An old Node must be able to read this file and src/package-version.ts, to say which
 * Node is needed: neither imports or uses what is younger than `import()`. `init` runs on Node 20 as well, and brings a newer one.
 *
 * Compiled code is cached for the next start, also of worker threads: importing the program takes 78 ms of processor time instead of 110. It is kept
 * beside the packages, never in a folder that other users can write, because V8 trusts it; without write permission there is none.
 */
const initNodeMin = 20;

async function run(): Promise<void> {
  const { nodeRefusal } = await import('./package-version.ts');
  const refusal = nodeRefusal();
  const canInit = process.argv[2] === 'init' && Number.parseInt(process.versions.node, 10) >= initNodeMin;
  if (refusal === undefined) await cacheCode();
  else if (!canInit) {
    process.stderr.write(`${refusal}\n`);
    process.exitCode = 1;
    return;
  }
  // Imported last, so that the cache applies to what this imports.
  const { runProgram } = await import('./cli/program.ts');
  const { openTerminal } = await import('./cli/terminal.ts');
  process.exit(await runProgram(process.argv.slice(2), openTerminal(process.env, process)));
}

async function cacheCode(): Promise<void> {
  const { enableCompileCache } = await import('node:module');
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    process.env.NODE_COMPILE_CACHE = `${import.meta.dirname}/../node_modules/.cache/comity/program`;
  }
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
}

void run();
