/** Which received messages a command is about, as its options say it and as the server is asked. */
import { pastTime } from '../past-time.ts';

export type Choice = {
  readonly sender?: string;
  readonly status?: string;
  readonly type?: string;
  readonly since?: string;
};

/** The filter of a JSON QUERY (§4.9); no members where everything is chosen. */
export type ChosenFilter = Readonly<Record<string, unknown>>;

export function filterOf({ sender, status, type, since }: Choice, nowMs: number): ChosenFilter {
  return {
    ...(sender === undefined ? {} : { sender }),
    ...(status === undefined ? {} : { status }),
    ...(type === undefined ? {} : { type }),
    ...(since === undefined ? {} : { receivedAt: { gte: pastTime('--since', since, nowMs) } }),
  };
}

/** The same in a query component. */
export function parametersOf({ sender, status, type, since }: Choice, nowMs: number): URLSearchParams {
  const asked = new URLSearchParams();
  if (sender !== undefined) asked.set('sender', sender);
  if (status !== undefined) asked.set('status', status);
  if (type !== undefined) asked.set('type', type);
  if (since !== undefined) asked.set('receivedAt[gte]', pastTime('--since', since, nowMs));
  return asked;
}
