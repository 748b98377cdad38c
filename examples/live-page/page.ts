/** The page: a list of categories that stays live, and changes of it, with plain DOM. */
import { ConflictError, createClient } from 'comity/client';
import type { Api } from './api.ts';

const find = <E extends Element>(selector: string): E => {
  const found = document.querySelector<E>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
};
const status = find('[role="status"]');
const alert = find('[role="alert"]');
const shown = find<HTMLUListElement>('ul');
const signIn = find<HTMLFormElement>('#sign-in');
const add = find<HTMLFormElement>('#add');

const baseUrl = new URLSearchParams(location.search).get('api') ?? 'http://127.0.0.1:4000/api/v1';
const client = createClient<Api>({
  baseUrl,
  storage: localStorage,
  onSessionEnd: () => showSession(false),
});

function showSession(isSignedIn: boolean): void {
  signIn.hidden = isSignedIn;
  add.hidden = !isSignedIn;
}

/** Runs what a person asked for, and says why it failed. */
async function attempt(work: () => Promise<unknown>): Promise<void> {
  alert.textContent = '';
  try {
    await work();
  } catch (error) {
    alert.textContent =
      error instanceof ConflictError
        ? `Someone else changed ${error.members.join(' and ')} meanwhile; the list shows it now.`
        : (error as Error).message;
  }
}

signIn.addEventListener('submit', (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(signIn)) as { email: string; password: string };
  void attempt(async () => {
    try {
      await client.auth.login({ email, password });
    } catch (error) {
      if (!client.isError(error) || error.code !== 'invalid_credentials') throw error;
      await client.auth.register({ email, password });
    }
    signIn.reset();
    showSession(true);
  });
});

find('#sign-out').addEventListener('click', () =>
  attempt(async () => {
    await client.auth.logout();
    showSession(false);
  }),
);

add.addEventListener('submit', (event) => {
  event.preventDefault();
  const name = String(new FormData(add).get('name'));
  void attempt(async () => {
    await client.categories.create({ name });
    add.reset();
  });
});

const list = await client.categories.live({ sort: ['name'], limit: 100 });
type Category = (typeof list.page.items)[number];

/** Rows by the ids of their categories: one that is being edited stays, with the version that its editor saw. */
const rows = new Map<string, { row: HTMLLIElement; input: HTMLInputElement; seen: Category }>();

function rowOf(category: Category): HTMLLIElement {
  const known = rows.get(category.id);
  if (known !== undefined) {
    if (document.activeElement !== known.input) {
      known.seen = category;
      known.input.value = category.name;
    }
    return known.row;
  }
  const row = document.createElement('li');
  const input = document.createElement('input');
  const remove = document.createElement('button');
  input.value = category.name;
  input.setAttribute('aria-label', 'Name');
  remove.textContent = 'Delete';
  row.append(input, remove);
  const made = { row, input, seen: category };
  rows.set(category.id, made);
  input.addEventListener('change', () =>
    attempt(async () => {
      const { seen } = made;
      input.blur();
      try {
        made.seen = await client.categories.update(seen, { name: input.value });
      } finally {
        render();
      }
    }),
  );
  remove.addEventListener('click', () => attempt(() => client.categories.delete(made.seen)));
  return row;
}

function render(): void {
  status.textContent = list.state === 'live' ? `${list.page.items.length} categories, live` : list.state;
  shown.replaceChildren(...list.page.items.map(rowOf));
  for (const id of rows.keys()) if (!list.page.items.some((item) => item.id === id)) rows.delete(id);
}

list.subscribe(render);
render();
showSession(
  await client.auth.me().then(
    () => true,
    () => false,
  ),
);
