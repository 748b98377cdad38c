/** The part of oidc-provider, which ships no types, that the fixture uses. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Readonly<Record<string, unknown>>,
    ): Promise<void>;
    readonly Grant: {
      new (parts: Readonly<Record<string, unknown>>): Grant;
      find(id: string): Promise<Grant | undefined>;
    };
  }

  export type Grant = { addOIDCScope(scope: string): void; save(): Promise<string> };
}
