/**
 * Path to resource: a tree of literal segments with at most one capture per level. A literal wins over a
 * capture, so an action (`bulk-delete`) hides a member of that name. A path that ends in a slash names nothing.
 */
import type { Resource, Route } from './resource.ts';

type Branch = {
  readonly literals: Map<string, Branch>;
  capture: Branch | undefined;
  resource: Resource | undefined;
};

export type Router = {
  /** The route of decoded path segments; undefined: nothing stands there. */
  find(segments: readonly string[]): Route | undefined;
  readonly resources: readonly Resource[];
};

const none: readonly string[] = [];

/** @throws {Error} when two resources have the same pattern */
export function createRouter(resources: readonly Resource[]): Router {
  const root = branch();
  for (const resource of resources) plant(root, resource);
  return { resources, find: (segments) => find(root, segments) };
}

function find(root: Branch, segments: readonly string[]): Route | undefined {
  let at = root;
  let captures: string[] | undefined;
  for (const segment of segments) {
    const literal = at.literals.get(segment);
    if (literal !== undefined) {
      at = literal;
      continue;
    }
    if (at.capture === undefined || segment === '') return undefined;
    at = at.capture;
    if (captures === undefined) captures = [segment];
    else captures.push(segment);
  }
  return at.resource === undefined ? undefined : { resource: at.resource, captures: captures ?? none };
}

function plant(root: Branch, resource: Resource): void {
  let at = root;
  for (const segment of resource.pattern.split('/').slice(1)) {
    if (segment.startsWith('{')) {
      at.capture ??= branch();
      at = at.capture;
      continue;
    }
    const next = at.literals.get(segment) ?? branch();
    at.literals.set(segment, next);
    at = next;
  }
  if (at.resource !== undefined) throw new Error(`two resources share the pattern ${resource.pattern}`);
  at.resource = resource;
}

function branch(): Branch {
  return { literals: new Map(), capture: undefined, resource: undefined };
}
