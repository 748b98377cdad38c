#!/usr/bin/env node
/** The program: from the command line to an exit code. Everything else is in cli/. */
import process from 'node:process';
import { runProgram } from './cli/program.ts';

process.exit(await runProgram(process.argv.slice(2), process.env));
