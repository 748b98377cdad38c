/** Reads the content of a `fetch` response up to a bound; longer content is not read to its end. */

/** The used part of a stream reader, which every runtime provides. */
export type BodyReader = {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
};

/** @throws Error if there is more */
export async function readBounded(reader: BodyReader, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (value === undefined) continue;
    length += value.length;
    if (length > bytesMax) {
      await reader.cancel();
      throw new Error(`the response has more than ${bytesMax} bytes`);
    }
    chunks.push(value);
  }
  const content = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    content.set(chunk, at);
    at += chunk.length;
  }
  return content;
}
