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
import type { Ask, Resource } from '../../resource.ts';
import { missing, type Shown, shown, shownList, shownResource } from '../shown-resource.ts';

/** @param path `/api/v1/event-types` */
export function eventTypeResources(eventTypes: EventTypes, path: string): readonly Resource[] {
  const texts = new Map([...eventTypes.values()].map((type) => [type.type, textOf(type)] as const));
  const list = (ask: Ask): Shown => {
    const items: string[] = [];
    for (const type of eventTypes.values()) {
      if (isTold(type, ask.principal)) items.push(texts.get(type.type) ?? '');
    }
    return shownList(items);
  };
  const one = (ask: Ask): Shown => {
    const type = eventTypes.get(ask.captures[0] ?? '');
    if (type === undefined || !isTold(type, ask.principal)) return missing;
    return shown(texts.get(type.type) ?? '');
  };
  return [shownResource(path, mayRead, list), shownResource(`${path}/{type}`, mayRead, one)];
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
