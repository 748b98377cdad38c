/**
 * Rounds of the client in whatever runtime runs this file: `RUNTIME rounds.ts CLIENT BASE KEY`, where CLIENT is the bundled client and BASE a
 * faulty proxy that loses the answers to requests whose path or content names `lost` (run-elsewhere.ts). Prints a line for each round.
 */
const [clientFile = '', baseUrl = '', key = ''] = (
  globalThis as unknown as { process: { argv: string[] } }
).process.argv.slice(2);
const { createClient, ConflictError } = await import(clientFile);

async function round(name: string, run: () => Promise<boolean>): Promise<void> {
  const outcome = await run().catch((error: unknown) => error);
  console.log(`${outcome === true ? 'ok  ' : 'FAIL'} ${name}${outcome === true ? '' : `: ${outcome}`}`);
}

async function until(holds: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 400; tries += 1) {
    if (holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return false;
}

const client = createClient({ baseUrl, key });
const named = async (name: string) => (await client.categories.list({ filter: { name } })).items;

for (const method of ['create', 'update', 'replace', 'delete'])
  await round(`${method}: an answer is lost after the commit`, async () => {
    const name = `lost ${method} ${Math.random()}`;
    const isCreation = method === 'create';
    const headers = { 'X-Lost': '1' };
    const made = await client.categories.create(
      { name: isCreation ? name : 'kept' },
      isCreation ? { headers } : {},
    );
    if (isCreation) return (await named(name)).length === 1;
    if (method === 'delete') {
      await client.categories.delete(made, { headers });
      return (
        (await client.categories.get(made.id).catch(({ code }: { code: string }) => code)) === 'not_found'
      );
    }
    return (await client.categories[method](made, { name }, { headers })).name === name;
  });
await round('a change of others is merged, or a conflict', async () => {
  const made = await client.categories.create({ name: 'Kitchen' });
  await client.categories.update(made.id, { name: 'Garden' });
  const error = await client.categories.update(made, { name: 'Attic' }).catch((caught: unknown) => caught);
  return error instanceof ConflictError && (await client.categories.get(made.id)).name === 'Garden';
});
await round('QUERY, and its Location', async () => {
  const query = { filter: { or: [{ name: 'Garden' }, { name: 'x' }] } };
  const pages = [await client.categories.query(query), await client.categories.query(query)];
  return pages.every(({ items }) => items.length > 0);
});
await round('`..` is refused', async () => {
  const error = await client.categories.get('..').catch((caught: unknown) => caught);
  return error instanceof TypeError;
});
await round('a lost exchange of tokens, again after the time of its reuse', async () => {
  const values = new Map<string, string>();
  const storage = {
    getItem: (name: string) => values.get(name) ?? null,
    setItem: (name: string, value: string) => void values.set(name, value),
    removeItem: (name: string) => void values.delete(name),
  };
  const person = createClient({ baseUrl, storage });
  const email = `ada${Math.random()}@shop.example`;
  await person.auth.register({ email, password: 'correct horse battery' });
  const other = createClient({ baseUrl, storage });
  await other.notes.list();
  await Promise.all([person.auth.refresh(), other.auth.refresh()]);
  return (await person.auth.me()).email === email && (await other.auth.me()).email === email;
});
for (const transport of ['socket', 'stream', 'poll'])
  await round(`a live list over ${transport}`, async () => {
    const live = createClient({ baseUrl, key, transport });
    const name = `live ${transport}`;
    const list = await live.categories.live({ filter: { name } });
    const made = await client.categories.create({ name });
    const came = await until(() => list.page.items.length === 1);
    await client.request('GET', '/cut').catch(() => undefined);
    await client.categories.delete(made.id);
    const left = await until(() => list.page.items.length === 0);
    live.close();
    return came && left;
  });
