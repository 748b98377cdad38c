/**
 * The document's `components`, filled while its paths are built. Responses and parameters that several operations have
 * alike are kept once; otherwise the document of four collections would be three times as long.
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

  /**
   * A copy of path items in which a response or a parameter that stands in several places is a reference to a component, named like the
   * parameter or by what the response means.
   */
  *shared(items: Readonly<Record<string, Item>>): Generator<void, Record<string, Item>> {
    const seen = new Map<string, number>();
    const count = (_kind: Kind, _name: string, item: Item) => {
      const text = JSON.stringify(item);
      seen.set(text, (seen.get(text) ?? 0) + 1);
      return item;
    };
    const share = (kind: Kind, name: string, item: Item) =>
      (seen.get(JSON.stringify(item)) ?? 0) > 1 ? this.intern(kind, name, item, () => item) : item;
    for (const item of Object.values(items)) {
      mapShared(item, count);
      yield;
    }
    const copies: Record<string, Item> = {};
    for (const [path, item] of Object.entries(items)) {
      copies[path] = mapShared(item, share);
      yield;
    }
    return copies;
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

type Replace = (kind: Kind, name: string, item: Item) => Item;

/** A copy of a path item whose inline parameters and responses are replaced. */
function mapShared(item: Item, replace: Replace): Item {
  return mapped(item, (name, part) => {
    if (name === 'parameters') return parametersOf(part, replace);
    return mapped(part as Item, (keyword, value) => {
      if (keyword === 'parameters') return parametersOf(value, replace);
      if (keyword === 'responses') return responsesOf(value as Item, replace);
      if (keyword !== 'x-responses') return value;
      return mapped(value as Item, (_field, asked) => responsesOf(asked as Item, replace, true));
    });
  });
}

function parametersOf(parameters: unknown, replace: Replace): unknown {
  return (parameters as readonly Item[]).map((each) =>
    '$ref' in each ? each : replace('parameters', componentName(String(each.name)), each),
  );
}

/**
 * @param isWhole also responses with content. Those that generators read stay where they are: swagger-typescript-api does not read the
 * content of one that is referred to (findings/referred-responses-and-content.sh).
 */
function responsesOf(responses: Item, replace: Replace, isWhole = false): Item {
  return mapped(responses, (status, each) => {
    const item = each as Item;
    const stays = '$ref' in item || ('content' in item && status !== 'default' && !isWhole);
    return stays ? item : replace('responses', responseNames[status] ?? `Status${status}`, item);
  });
}

const responseNames: Readonly<Record<string, string>> = {
  200: 'Ok',
  202: 'Accepted',
  204: 'NoContent',
  206: 'PartialContent',
  303: 'SeeOther',
  304: 'NotModified',
  default: 'Error',
};

function mapped(item: Item, map: (name: string, part: unknown) => unknown): Item {
  return Object.fromEntries(Object.entries(item).map(([name, part]) => [name, map(name, part)]));
}

/** Names of components have letters, digits, dots, hyphens and low lines only. */
function componentName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]/g, '_');
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
