/** As much of express, which ships no types, as the example uses; a project of one's own has @types/express. */
declare module 'express' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http';

  export type Response = ServerResponse & {
    status(code: number): Response;
    set(fields: Readonly<Record<string, string>>): Response;
  };
  export type Handler = (
    request: IncomingMessage & { readonly body?: unknown },
    response: Response,
    next: (error?: unknown) => void,
  ) => unknown;
  export type App = {
    post(path: string, ...handlers: readonly Handler[]): App;
    use(...handlers: readonly Handler[]): App;
    listen(port: number, host?: string): Server;
  };

  const express: {
    (): App;
    json(): Handler;
    raw(options: { type: () => boolean; inflate?: boolean; limit?: string }): Handler;
  };
  export default express;
}
