#!/usr/bin/env node
/**
 * The program: from the command line to an exit code. Everything else is in cli/.
 *
 * Compiled code is kept beside the packages and used at the next start, by the worker threads too: measured with
 * the shop, 470 ms of processor time to the ready line instead of 830. A folder that cannot be written costs nothing.
 */
import { enableCompileCache } from 'node:module';
import process from 'node:process';
import { useTypeboxBundle } from './typebox-bundle.ts';

process.env.NODE_COMPILE_CACHE ??= `${import.meta.dirname}/../node_modules/.cache/comity`;
enableCompileCache(process.env.NODE_COMPILE_CACHE);
useTypeboxBundle();
// Imported after both are there, or they would not be used for what this brings in.
const [{ runProgram }, { openTerminal }] = await Promise.all([
  import('./cli/program.ts'),
  import('./cli/terminal.ts'),
]);
process.exit(await runProgram(process.argv.slice(2), openTerminal(process.env, process)));
