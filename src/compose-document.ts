/** Hands the OpenAPI document what it describes: every resource of the program, and how it is set up. */
import { setImmediate } from 'node:timers/promises';
import type { Configuration } from './config/configuration.ts';
import type { Settings } from './config/settings.ts';
import type { Resource } from './kernel/resource.ts';
import { type OpenApiOptions, type OpenApiVersion, openApiSteps } from './openapi/document.ts';
import { contentTag } from './resources/program/document.ts';
import type { ProgramOptions } from './resources/program/program-routes.ts';
import type { EventTypes } from './webhooks/sending/event-types/event-types.ts';

export type DocumentOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  /** Every resource, in the order of the document; asked for when the document is made. */
  readonly resources: () => readonly Resource[];
  readonly eventTypes: EventTypes;
};

/** How long one slice of the making may hold the event loop. */
const sliceMs = 10;

/** Each version of the document is made when it is first asked for, in slices: it takes 100 to 300 ms, and few ask. */
export function composeDocument(options: DocumentOptions): ProgramOptions['openApi'] {
  const made = new Map<OpenApiVersion, Promise<{ content: Uint8Array; tag: string }>>();
  return (version = '3.2') => {
    if (version !== '3.2' && version !== '3.1') return undefined;
    const known = made.get(version) ?? make(options, version);
    made.set(version, known);
    return known;
  };
}

async function make(
  options: DocumentOptions,
  version: OpenApiVersion,
): Promise<{ content: Uint8Array; tag: string }> {
  const steps = openApiSteps(openApiOptions(options, version));
  for (let begun = performance.now(); ; ) {
    const step = steps.next();
    if (step.done === true) {
      await setImmediate();
      // As octets, which all who ask for it at once are sent without a copy.
      const content = Buffer.from(JSON.stringify(step.value));
      return { content, tag: contentTag(content) };
    }
    if (performance.now() - begun < sliceMs) continue;
    await setImmediate();
    begun = performance.now();
  }
}

function openApiOptions(
  { configuration, settings, resources, eventTypes }: DocumentOptions,
  version: OpenApiVersion,
): OpenApiOptions {
  return {
    ...configuration,
    resources: resources(),
    traceEnabled: settings.traceMethod,
    corsEnabled: settings.corsOrigins !== '',
    verifiedEmailRequired: settings.verifiedEmailRequired,
    eventTypes: [...eventTypes.values()],
    version,
  };
}
