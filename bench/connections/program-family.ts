/** What a program and all that it started use of the machine, as /proc has it (Linux). */
import { readdirSync, readFileSync } from 'node:fs';
import { memoryOf } from '../server-process.ts';

/** What /proc counts processor time in (`USER_HZ` of Linux). */
const tickUs = 10_000;

/** The process and its children, and theirs. */
export function familyOf(pid: number): readonly number[] {
  const family = [pid];
  for (let at = 0; at < family.length; at += 1) family.push(...childrenOf(family[at] ?? 0));
  return family;
}

/** What is not mapped from files, in bytes. */
export function familyMemoryBytes(pid: number): number {
  return sum(familyOf(pid).map((member) => memoryOf(member, 'RssAnon') ?? 0));
}

/** Processor time in microseconds, of threads and children that have ended too: some programs have one for each connection. */
export function familyProcessorUs(pid: number): number {
  return sum(familyOf(pid).map(processorUsOf));
}

/** To a hundredth of a second. */
function processorUsOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // What follows the name, which may hold anything: utime, stime, cutime and cstime are the 12th to the 15th.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return sum(fields.slice(11, 15).map(Number)) * tickUs;
  } catch {
    // It has ended, and its parent has its time.
    return 0;
  }
}

function childrenOf(pid: number): readonly number[] {
  const children: number[] = [];
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim();
      if (text !== '') children.push(...text.split(' ').map(Number));
    }
  } catch {
    // The process or the thread has ended: it has no children.
  }
  return children;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
