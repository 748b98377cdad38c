/** The content of an answer of `fetch`, up to a bound: what is longer is not read to its end. */

/** A stream as far as it is read here: that of every runtime fits. */
export type BodyReader = {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
};

/** @throws Error when there is more */
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
      throw new Error(`the answer has more than ${bytesMax} bytes`);
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
