/**
 * The files of documents that `comity export` writes and `comity import` reads: octets in the folder `FILE.files`, each under its id and
 * digest as a place keeps it. An export passes over what the folder has, so that a repeated one continues; an import sends the octets as an
 * upload of its own, which the document then names.
 */

import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { bytesAt, inParallel } from '../../files/copy-files.ts';
import { keyOf, sha256Of } from '../../files/file-rows.ts';
import { openFolderPlace, readableFolderPlace } from '../../files/folder-place.ts';
import { IncomingFile } from '../../files/incoming.ts';
import type { Place } from '../../files/place.ts';
import { formatContentDisposition } from '../../http/syntax/content-disposition.ts';
import type { FileValue } from '../../model/file.ts';
import { CommandFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';

type Document = Readonly<Record<string, unknown>>;

function isFile(value: unknown): value is FileValue {
  if (typeof value !== 'object' || value === null) return false;
  const { id, digest, url, bytes } = value as Partial<FileValue>;
  return (
    typeof id === 'string' &&
    id.startsWith('file_') &&
    typeof digest === 'string' &&
    digest.startsWith('sha-256=:') &&
    typeof url === 'string' &&
    typeof bytes === 'number'
  );
}

function filesOf(document: Document): readonly FileValue[] {
  return Object.values(document).flatMap((value) => [value].flat().filter(isFile));
}

/** The folder beside the file of an export. */
export function folderOf(file: string): string {
  return `${file}.files`;
}

/** True if the export has a folder of files. */
export async function hasFolder(file: string): Promise<boolean> {
  return stat(folderOf(file)).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

export class FileTransfer {
  readonly #server: ServerClient;
  readonly #folder: string;
  #place: Place | undefined;
  /** Files that were written or sent. */
  count = 0;

  constructor(server: ServerClient, folder: string) {
    this.#server = server;
    this.#folder = folder;
  }

  async #open(): Promise<Place> {
    this.#place ??= await openFolderPlace(this.#folder);
    return this.#place;
  }

  /** Writes the files of documents into the folder. @throws CommandFailure for one that does not arrive as its document says */
  async save(documents: readonly Document[]): Promise<void> {
    await inParallel(documents.flatMap(filesOf), (file) => this.#save(file));
  }

  async #save(file: FileValue): Promise<void> {
    const place = await this.#open();
    const key = keyOf(file);
    if ((await bytesAt(place, key)) === file.bytes) return;
    const incoming = await IncomingFile.create(place.incoming, `${file.id}.${process.pid}`);
    try {
      await this.#server.octets(this.#pathOf(file), `file ${file.id}`, (chunk) => incoming.write(chunk));
      const arrived = await incoming.end();
      if (!sha256Of(file.digest).equals(arrived.sha256))
        throw new CommandFailure(`the octets of ${file.url} are not those that its document says`);
      await place.keep(key, arrived);
      this.count += 1;
    } catch (error) {
      await incoming.drop();
      throw error;
    }
  }

  #pathOf({ url }: FileValue): string {
    const { pathname } = new URL(this.#server.api);
    return url.startsWith(`${pathname}/`) ? url.slice(pathname.length) : url;
  }

  /** Sends the files of a document. @returns the document with an upload in the place of each file */
  async send(document: Document): Promise<Document> {
    if (filesOf(document).length === 0) return document;
    const sent: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(document)) {
      if (Array.isArray(value))
        sent[name] = await Promise.all(value.map((item) => (isFile(item) ? this.#send(item) : item)));
      else sent[name] = isFile(value) ? await this.#send(value) : value;
    }
    return sent;
  }

  async #send(file: FileValue): Promise<{ readonly upload: string }> {
    const octets = await this.#octetsOf(file);
    try {
      const answer = await this.#server.open('/uploads', {
        method: 'POST',
        body: octets,
        duplex: 'half',
        headers: {
          'Content-Type': file.type,
          'Content-Disposition': formatContentDisposition('attachment', file.name),
          'Upload-Complete': '?1',
        },
      });
      if (answer.status !== 201) throw await this.#server.refusal(answer);
      const { id, digest } = (await answer.json()) as { readonly id: string; readonly digest: string };
      if (digest !== file.digest)
        throw new CommandFailure(`the octets of ${file.name} (${file.id}) in ${this.#folder} are damaged`);
      this.count += 1;
      return { upload: id };
    } finally {
      octets.destroy();
    }
  }

  async #octetsOf(file: FileValue): Promise<Readable> {
    try {
      return await readableFolderPlace(this.#folder).read(keyOf(file), 0, file.bytes);
    } catch (error) {
      const message = `the folder ${this.#folder} has no octets of ${file.name} (${file.id})`;
      throw new CommandFailure(message, { cause: error });
    }
  }

  /** True if the server has the document. */
  async has(collection: string, { id }: Document): Promise<boolean> {
    if (typeof id !== 'string') return false;
    const path = `/${encodeURIComponent(collection)}/${encodeURIComponent(id)}`;
    const answer = await this.#server.open(path, { method: 'HEAD' });
    return answer.status === 200;
  }
}
