/**
 * Where tunnels lead to, on the second processor: one port that sends octets without end, and one that takes connections and says nothing.
 * A process of its own, for its ends of ten thousand tunnels would not fit beside the others. Asked as bench/webhooks/part.ts has it.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { answerQuestions } from '../webhooks/answer-questions.ts';

/** One write of so many is quicker than many small ones: 1.4 against 2.3 GB/s, source and sink on one processor. */
const writeBytes = 1_048_576;
const backlog = 4096;

export type DestinationQuestion = { readonly ask: 'ports' };
export type Ports = { readonly source: number; readonly quiet: number };

const octets = Buffer.alloc(writeBytes, 'octets ');

function pour(socket: Socket): void {
  const more = (): void => {
    while (socket.write(octets));
  };
  socket.on('error', () => undefined);
  socket.on('drain', more);
  socket.resume();
  more();
}

function hold(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.resume();
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen({ port: 0, host: '127.0.0.1', backlog }, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

const ports = Promise.all([listen(createServer(pour)), listen(createServer(hold))]);

answerQuestions<DestinationQuestion>(async () => {
  const [source, quiet] = await ports;
  return { source, quiet } satisfies Ports;
});
