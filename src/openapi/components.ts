/**
 * The document's `components`, filled while its paths are built. An error response that many operations share is kept
 * once; otherwise the document of four collections would be five times as long.
 */
import type { Item } from '../kernel/documentation.ts';

type Kind = 'schemas' | 'responses' | 'parameters' | 'examples' | 'headers' | 'securitySchemes';

export class Components {
  readonly #kinds = new Map<Kind, Map<string, Item>>();
  /** Names by the values that items are made of, for items without a name of their own. */
  readonly #interned = new Map<string, string>();

  /** Stores the item under its name and returns a reference. The same name must come with the same item. */
  add(kind: Kind, name: string, item: Item): Item {
    this.#of(kind).set(name, kind === 'schemas' ? located(item, name) : item);
    return ref(kind, name);
  }

  has(kind: Kind, name: string): boolean {
    return this.#of(kind).has(name);
  }

  get(kind: Kind, name: string): Item | undefined {
    return this.#of(kind).get(name);
  }

  /** As `add`, of an item that is made only if it is not there. */
  once(kind: Kind, name: string, make: () => Item): Item {
    return this.has(kind, name) ? ref(kind, name) : this.add(kind, name, make());
  }

  /** Stores items that are made of equal values once, and numbers different items of one name. */
  intern(kind: Kind, name: string, values: unknown, make: () => Item): Item {
    const key = `${kind} ${name} ${JSON.stringify(values)}`;
    const known = this.#interned.get(key);
    if (known !== undefined) return ref(kind, known);
    let unused = name;
    for (let number = 2; this.has(kind, unused); number += 1) unused = `${name}${number}`;
    this.#interned.set(key, unused);
    return this.add(kind, unused, make());
  }

  /** Returns the components that the paths reach; security schemes, which are referred to by name, all stay. */
  toItem(paths: Item): Item {
    const used = new Set<string>();
    this.#follow(paths, used);
    const kept = [...this.#kinds].map(([kind, items]) => {
      const own = [...items].filter(
        ([name]) => kind === 'securitySchemes' || used.has(String(ref(kind, name).$ref)),
      );
      return [kind, Object.fromEntries(own)] as const;
    });
    return Object.fromEntries(kept);
  }

  #follow(value: unknown, used: Set<string>): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, part] of Object.entries(value)) {
      if (name !== '$ref' || typeof part !== 'string') this.#follow(part, used);
      else {
        // A reference may lead into a component.
        const whole = part.split('/', 4).join('/');
        if (used.has(whole)) continue;
        used.add(whole);
        this.#follow(this.#referred(whole), used);
      }
    }
  }

  #referred(text: string): Item | undefined {
    const [, , kind = '', name = ''] = text.split('/');
    return this.#kinds.get(kind as Kind)?.get(name);
  }

  #of(kind: Kind): Map<string, Item> {
    const items = this.#kinds.get(kind) ?? new Map<string, Item>();
    this.#kinds.set(kind, items);
    return items;
  }
}

const withinItself = /^#(?!\/components\/)(?:\/|$)/;

/** A schema with references into itself, as it stands in the document: `#` means the whole document there. */
export function located(schema: Item, name: string): Item {
  const at = `#/components/schemas/${name}`;
  const text = JSON.stringify(schema, (keyword, value: unknown) =>
    keyword === '$ref' && typeof value === 'string' && withinItself.test(value) ? at + value.slice(1) : value,
  );
  return JSON.parse(text) as Item;
}

/** `#/components/{kind}/{name}`; names here never contain characters that a JSON Pointer escapes. */
export function ref(kind: string, name: string): Item {
  return { $ref: `#/components/${kind}/${name}` };
}
