/**
 * What the shop does with the webhooks that it receives. A handler is called outside of the request, on a thread of its own. What it writes
 * is committed together with the mark that the message is processed: all of it or nothing, and once, however often the sender repeats
 * itself. Types that a handler does not know are none of its business.
 *
 * In a project of your own the first line reads: import { type Handler, ... } from 'comity';
 */
import { type Document, type Handler, type ResourcesOf, UnprocessableMessage } from 'comity';

/** What the handlers below read and write of the shop's collections. */
type Shop = ResourcesOf<{ products: Product; articles: Article }>;
type Product = { sku?: string; stock?: number };
type Article = { title: string; body?: string; published?: boolean };

/** From the partner's warehouse: `{"type": "stock.counted", "data": {"sku": "KETTLE-15", "stock": 12}}`. */
export const countStock: Handler<Shop> = async ({ message, resources }) => {
  if (message.type !== 'stock.counted') return;
  const { data } = message.json() as { data?: { sku?: unknown; stock?: number } };
  const product = await productOf(data?.sku, resources);
  // As with any client of the API, what does not fit the schema is refused, and the attempt fails by it.
  await resources.products.update(product.id, { stock: data?.stock ?? 0 });
};

/** From billing: `{"type": "checkout.completed", "data": {"object": {"sku": "KETTLE-15", "quantity": 2}}}` and an id. */
export const takeOffStock: Handler<Shop> = async ({ message, resources }) => {
  if (message.type !== 'checkout.completed') return;
  const { data } = message.json() as { data?: { object?: { sku?: unknown; quantity?: unknown } } };
  const product = await productOf(data?.object?.sku, resources);
  const stock = Number(product.stock ?? 0) - Number(data?.object?.quantity);
  await resources.products.update(product.id, { stock });
};

/** From the forge: `{"action": "published", "release": {"name": "1.2", "body": "..."}}`. An editor publishes the article. */
export const draftReleaseNote: Handler<Shop> = async ({ message, resources }) => {
  if (message.type !== 'release') return;
  const { action, release } = message.json() as {
    action?: unknown;
    release?: { name: string; body?: string };
  };
  if (action !== 'published' || release === undefined) return;
  await resources.articles.create({ title: release.name, body: release.body ?? '', published: false });
};

/** Should somebody change what is found before the commit, the message is handled anew. */
async function productOf(sku: unknown, resources: Shop): Promise<Document<Product>> {
  const [found] = await resources.products.list({ filter: { sku: String(sku) }, limit: 1 });
  // Trying again would not help. The message has failed, and can be replayed when the product is there.
  if (found === undefined) throw new UnprocessableMessage(`no product has the sku ${String(sku)}`);
  return found;
}
