/** The one connection of a floor program: the client that Comity uses, with its pipelining, and nothing around it. */
import { Client, types } from 'pg';

const int8 = 20;
const float8 = 701;

export async function connectFloor(url: string): Promise<Client> {
  types.setTypeParser(int8, Number);
  types.setTypeParser(float8, Number);
  const client = new Client({ connectionString: url, pipeline: true } as ConstructorParameters<
    typeof Client
  >[0]);
  await client.connect();
  return client;
}

/** One prepared statement; rows are arrays. */
export function query(
  client: Client,
  name: string,
  text: string,
  values: readonly unknown[],
): Promise<readonly (readonly unknown[])[]> {
  return new Promise((resolve, reject) => {
    client.query(
      { name, text, values: [...values], rowMode: 'array' },
      (error: Error | null, result: { rows: unknown[][] }) => (error ? reject(error) : resolve(result.rows)),
    );
  });
}
