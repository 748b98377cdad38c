/** A secret that the server shows this once, with a button that copies it. */
import type { JSX } from 'preact';
import { CopyButton, Json } from './value.tsx';

type SecretOnceProps = {
  readonly secret: string;
  /** The whole response. */
  readonly made: unknown;
  readonly onDone: () => void;
};

export function SecretOnce({ secret, made, onDone }: SecretOnceProps): JSX.Element {
  return (
    <div class="panel" role="status">
      <p>
        <strong>Only this response shows the secret. Copy it now.</strong>
      </p>
      <p class="secret">
        <code>{secret}</code> <CopyButton text={secret} />
      </p>
      <details>
        <summary>The whole response</summary>
        <Json value={made} label="The new resource" />
      </details>
      <button type="button" class="primary" onClick={onDone}>
        Done
      </button>
    </div>
  );
}
