/**
 * A failure of a provider, as one describe without tokens, codes and claims. Errors of oauth4webapi carry these as causes, so they
 * never leave this folder.
 */
import {
  AuthorizationResponseError,
  OperationProcessingError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'oauth4webapi';

export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
}

/** Converts an error to a ProviderFailure; `during` names the step, for the log. */
export function providerFailure(error: unknown, during: string): ProviderFailure {
  return error instanceof ProviderFailure ? error : new ProviderFailure(`${during}: ${describe(error)}`);
}

/** RFC 6749 §5.2: an unbounded word of a closed alphabet. */
const errorCode = /^[a-z_]{1,40}$/;

function describe(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    return errorCode.test(error.error)
      ? `the provider returned the error ${error.error}`
      : 'the provider returned an error';
  }
  if (error instanceof WWWAuthenticateChallengeError) return `the provider returned status ${error.status}`;
  if (error instanceof OperationProcessingError) return error.message;
  if (!(error instanceof Error)) return 'unknown error';
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no response in time';
  const code = readCode(error) ?? readCode(error.cause);
  return code === undefined ? error.message : `${error.message} (${code})`;
}

/** `fetch failed` has its reason in the cause, such as `ECONNREFUSED`. */
function readCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
