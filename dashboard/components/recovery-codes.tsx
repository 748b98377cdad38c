/** Recovery codes, which the server shows this once. */
import type { JSX } from 'preact';
import { isObject } from '../send.ts';
import { CopyButton } from './value.tsx';

type RecoveryCodesProps = { readonly codes: readonly string[]; readonly onDone: () => void };

export function RecoveryCodes({ codes, onDone }: RecoveryCodesProps): JSX.Element {
  return (
    <div class="panel" role="status">
      <h2>Recovery codes</h2>
      <p>
        <strong>They are shown only now.</strong> Each replaces your second factor once. Keep them where you
        keep your passwords, not on the device with the authenticator.
      </p>
      <ul class="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <CopyButton text={codes.join('\n')} />
        <button type="button" class="primary" onClick={onDone}>
          I have stored them
        </button>
      </div>
    </div>
  );
}

/** Codes are in a response only when they are new. */
export function codesIn(json: unknown): readonly string[] {
  return isObject(json) && Array.isArray(json.recoveryCodes) ? json.recoveryCodes.map(String) : [];
}
