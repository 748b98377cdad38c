/** Passkeys by the browser (WebAuthn), in the JSON form that the API sends and takes. */
import { base } from './description.ts';
import { isObject, type Problem, problemOf, send } from './send.ts';

/** True where the page may use passkeys: a secure origin that is not an IP address. */
export const hasPasskeys =
  'PublicKeyCredential' in globalThis && 'parseCreationOptionsFromJSON' in PublicKeyCredential;

export type Used = { readonly challenge: string; readonly response: unknown };

type Asked<T> = { readonly problem: Problem } | T;

/** @param path that gives options, below `{base}/auth` */
export async function usePasskey(path: string, content: unknown): Promise<Asked<Used>> {
  const begun = await begin(path, content);
  if ('problem' in begun) return begun;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    begun.options as unknown as PublicKeyCredentialRequestOptionsJSON,
  );
  return finish(begun.challenge, () => navigator.credentials.get({ publicKey }));
}

export async function createPasskey(content: unknown): Promise<Asked<Used>> {
  const begun = await begin('passkeys/options', content);
  if ('problem' in begun) return begun;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    begun.options as unknown as PublicKeyCredentialCreationOptionsJSON,
  );
  return finish(begun.challenge, () => navigator.credentials.create({ publicKey }));
}

type Begun = { readonly challenge: string; readonly options: Readonly<Record<string, unknown>> };

async function begin(path: string, content: unknown): Promise<Asked<Begun>> {
  const reply = await send('POST', `${base.value}/auth/${path}`, { json: content });
  const problem = problemOf(reply);
  if (problem !== undefined) return { problem };
  const { challenge, options } = isObject(reply.json) ? reply.json : {};
  return { challenge: String(challenge), options: isObject(options) ? options : {} };
}

async function finish(challenge: string, ask: () => Promise<Credential | null>): Promise<Asked<Used>> {
  try {
    const credential = await ask();
    if (credential === null) return { problem: refusedBy('the browser gave no passkey') };
    return { challenge, response: (credential as PublicKeyCredential).toJSON() };
  } catch (error) {
    return { problem: refusedBy((error as Error).message) };
  }
}

function refusedBy(message: string): Problem {
  return {
    status: 0,
    message: `The passkey was not used: ${message}`,
    code: undefined,
    faults: [],
    trace: undefined,
    request: undefined,
  };
}
