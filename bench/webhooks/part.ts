/**
 * A process that takes part in a measurement of webhooks: the receiver, a floor program, the peer's worker. It is asked by messages and
 * answers each with one; nothing else passes between it and whoever measures.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Pinning, pinnedCommand } from '../pin.ts';

const answerMsMax = 120_000;

export type Part = {
  /** One question at a time. Rejects when the process ends, says that it failed, or is silent for two minutes. */
  ask<Answer>(question: object): Promise<Answer>;
  stop(): Promise<void>;
};

/** @param program a file relative to `bench` */
export async function startPart(
  pinning: Pinning,
  processor: 0 | 1,
  program: string,
  args: readonly string[] = [],
): Promise<Part> {
  const file = fileURLToPath(new URL(`../${program}`, import.meta.url));
  const [command, commandArgs] = pinnedCommand(pinning, processor, [file, ...args]);
  const child = spawn(command, commandArgs, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const part: Part = {
    ask: (question) => askOnce(child, program, question),
    stop: () => stop(child),
  };
  await answerOf(child, program);
  return part;
}

function askOnce<Answer>(child: ChildProcess, program: string, question: object): Promise<Answer> {
  const answer = answerOf<Answer>(child, program);
  child.send(question);
  return answer;
}

function answerOf<Answer>(child: ChildProcess, program: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const end = (act: () => void): void => {
      clearTimeout(timer);
      child.off('message', onMessage);
      child.off('exit', onExit);
      act();
    };
    const onMessage = (message: unknown): void => {
      const { failure } = message as { failure?: string };
      if (failure === undefined) end(() => resolve(message as Answer));
      else end(() => reject(new Error(`${program}: ${failure}`)));
    };
    const onExit = (code: number | null): void =>
      end(() => reject(new Error(`${program} ended with code ${code}`)));
    const timer = setTimeout(
      () => end(() => reject(new Error(`${program} did not answer within ${answerMsMax / 1000} s`))),
      answerMsMax,
    );
    child.on('message', onMessage);
    child.once('exit', onExit);
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve();
      return;
    }
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 5000).unref();
  });
}
