/**
 * Floor of sending without a memory: signed POSTs of bodies that are made on the spot, so many under way at once. What is not acknowledged
 * is lost with the process.
 */
import { answerQuestions, nowMs } from '../../webhooks/answer-questions.ts';
import { eventId, eventText } from '../../webhooks/sent-events.ts';
import { type Scheme, signedPosts } from './signed-posts.ts';

export type SendQuestion = {
  readonly url: string;
  readonly scheme: Scheme;
  readonly count: number;
  readonly underWay: number;
};
/** When the last one was answered, and where there is a log, written down; milliseconds since the epoch. */
export type Sent = { readonly endedMs: number };

async function send({ url, scheme, count, underWay }: SendQuestion): Promise<Sent> {
  const posts = signedPosts(url, scheme);
  let begun = 0;
  let ended = 0;
  await new Promise<void>((resolve) => {
    const next = (): void => {
      if (begun >= count) return;
      const index = begun;
      begun += 1;
      posts.post(eventId(index), Buffer.from(eventText(index)), () => {
        ended += 1;
        if (ended === count) resolve();
        else next();
      });
    };
    while (begun < Math.min(underWay, count)) next();
  });
  const endedMs = nowMs();
  await posts.close();
  return { endedMs };
}

answerQuestions(send);
