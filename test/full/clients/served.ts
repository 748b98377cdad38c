/** One program on a cleartext and on a TLS port, with a destination of ours behind its tunnel, for the tests of a file. */
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { cert, key } from '../../accounts/mail/certificate.ts';
import { listen } from '../../harness/listening.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

export type Served = {
  readonly program: RunningServer;
  /** For files that clients are given; goes with the end. */
  readonly folder: string;
  /** `https://localhost:PORT` */
  readonly tlsUrl: string;
  readonly tlsPort: number;
  /** Path of the certificate, which clients are told to trust. */
  readonly certificate: string;
  /** Answers every request with its method and target, and every message of a WebSocket with itself. */
  readonly destination: string;
  readonly tlsDestination: string;
  /** Key of a principal that may tunnel and nothing besides. */
  readonly tunnelKey: string;
  end(): Promise<void>;
};

export async function serveClients(env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const folder = temporaryFolder();
  const certificate = join(folder, 'cert.pem');
  writeFileSync(certificate, cert);
  writeFileSync(join(folder, 'key.pem'), key);
  const listener: RequestListener = (request, response) => {
    response.end(`${request.method} ${request.url}`);
  };
  const cleartext = createServer(listener);
  new WebSocketServer({ server: cleartext }).on('connection', (socket) => {
    socket.on('message', (message) => socket.send(String(message)));
  });
  const destination = await listen(cleartext);
  const tlsDestination = await listen(createTlsServer({ cert, key }, listener));
  const program = await startServer({
    env: {
      COMITY_TLS_CERT: certificate,
      COMITY_TLS_KEY: join(folder, 'key.pem'),
      COMITY_TLS_PORT: '0',
      COMITY_EGRESS_ALLOW: '127.0.0.0/8,::1',
      COMITY_TUNNEL_PORTS: '1-65535',
      COMITY_REALTIME_ATTEMPT_MS: '0',
      ...env,
    },
  });
  const tlsPort = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(program.stdout())?.[1]);
  const made = await program.send('POST', '/api/v1/keys', {
    json: { name: 'tunnel', kind: 'secret', scopes: ['tunnel'] },
  });
  return {
    program,
    folder,
    tlsPort,
    tlsUrl: `https://localhost:${tlsPort}`,
    certificate,
    destination: destination.url,
    tlsDestination: `https://localhost:${tlsDestination.port}`,
    tunnelKey: String(made.json().key),
    async end() {
      await program.stop();
      await Promise.all([destination.close(), tlsDestination.close()]);
    },
  };
}
