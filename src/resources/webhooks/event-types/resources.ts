/**
 * `/event-types` (surface "Webhooks out"): the types that endpoints may ask for, each with the schema of its object and a sample. Types of
 * collections that the caller could never read are not told of: their samples would say what nobody showed it.
 */
import { type Permission, permission } from '../../../model/access.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import {
  type EventType,
  type EventTypes,
  sampleEvent,
} from '../../../webhooks/outbound/event-types/event-types.ts';
import type { QueryLimits } from '../../query/asked.ts';
import type { Ask, Resource } from '../../resource.ts';
import { type DeclaredItem, declaredList } from '../declared-list.ts';
import { missing, type Shown, shown, shownResource } from '../shown-resource.ts';

/** @param path `/api/v1/event-types` */
export function eventTypeResources(
  eventTypes: EventTypes,
  path: string,
  limits: QueryLimits,
): readonly Resource[] {
  const texts = new Map([...eventTypes.values()].map((type) => [type.type, textOf(type)] as const));
  const itemsFor = (principal: Principal): readonly DeclaredItem[] =>
    [...eventTypes.values()]
      .filter((type) => isTold(type, principal))
      .map(({ type }) => ({ name: type, text: texts.get(type) ?? '' }));
  const one = (ask: Ask): Shown => {
    const type = eventTypes.get(ask.captures[0] ?? '');
    if (type === undefined || !isTold(type, ask.principal)) return missing;
    return shown(texts.get(type.type) ?? '');
  };
  return [declaredList(path, mayRead, itemsFor, limits), shownResource(`${path}/{type}`, mayRead, one)];
}

function mayRead(principal: Principal): Permission {
  return permission({ bearing: 'webhooks', rule: 'principal' }, 'read', principal);
}

function isTold({ collection }: EventType, principal: Principal): boolean {
  if (collection === undefined || isAdministrator(principal)) return true;
  return permission(collection.access.read, 'read', principal) !== 'denied';
}

function textOf(type: EventType): string {
  const { description, schema } = type;
  const head = JSON.stringify({ type: type.type, description, schema: schema ?? null });
  return `${head.slice(0, -1)},"sample":${sampleEvent(type) ?? 'null'}}`;
}
