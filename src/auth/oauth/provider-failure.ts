/**
 * A provider that did not answer as it should. What is known of the failure is one sentence without tokens, codes and claims: the
 * errors of oauth4webapi carry these as their causes, so none of them leaves this folder.
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

/** What happened, for the log. */
export function providerFailure(error: unknown, during: string): ProviderFailure {
  return error instanceof ProviderFailure ? error : new ProviderFailure(`${during}: ${sentence(error)}`);
}

/** RFC 6749 §5.2: words of a closed alphabet, which a provider could still make long. */
const errorCode = /^[a-z_]{1,40}$/;

function sentence(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    return errorCode.test(error.error)
      ? `the provider says ${error.error}`
      : 'the provider tells of an error';
  }
  if (error instanceof WWWAuthenticateChallengeError) return `the provider answers ${error.status}`;
  if (error instanceof OperationProcessingError) return error.message;
  if (!(error instanceof Error)) return 'something failed';
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer in time';
  const code = codeOf(error) ?? codeOf(error.cause);
  return code === undefined ? error.message : `${error.message} (${code})`;
}

/** `fetch failed` says why in its cause, as `ECONNREFUSED`. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
