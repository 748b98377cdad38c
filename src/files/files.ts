/**
 * The feature: files of documents. A collection declares fields that hold files; here is what keeps their octets and rows, the stage that
 * every commit passes, their resources, and the removal of what no document has any more.
 */
import type { Configuration } from '../config/configuration.ts';
import type { Resource } from '../kernel/resource.ts';
import type { Collection } from '../model/collection.ts';
import { filesIn } from '../model/file.ts';
import type { Served } from '../resources/collection/served-collection.ts';
import type { Services } from '../store/capabilities.ts';
import { tryCommit } from '../store/lines.ts';
import type { CommitStage, ReadStage } from '../store/stages.ts';
import { Overtaken, type Store } from '../store/store.ts';
import { DocumentFiles, filePaths } from './document-files.ts';
import { linkedResource, linkResource } from './file-links.ts';
import { fileResources, type Serving } from './file-routes.ts';
import { fileHolders, filesStage } from './files-stage.ts';
import { createTypeJudge } from './media-type.ts';
import type { Place } from './place.ts';
import { createPreviews } from './previews.ts';
import { createQuotas } from './quotas.ts';
import { createRemoval } from './remove-files.ts';
import { UploadServing, uploadResources } from './uploads/upload-routes.ts';

export type Files = {
  readonly place: Place;
  readonly stage: CommitStage;
  readonly paths: ReadStage;
  readonly documents: DocumentFiles;
  /** @param declared all collections of the configuration @param mac signs links */
  resources(declared: readonly Served[], mac: (text: string) => string): readonly Resource[];
  /** Removes the files of the deleted documents with an id, through a store whose commits pass the stage; returns their number. */
  expungerFor(store: Store): (document: string) => Promise<number>;
  start(): void;
  close(): Promise<void>;
};

/** @param place undefined: no collection has files */
export function createFiles(
  services: Pick<Services, 'store' | 'clock' | 'newId' | 'random' | 'settings' | 'observe'>,
  { base, collections }: Pick<Configuration, 'base' | 'collections'>,
  place: Place | undefined,
): Files | undefined {
  if (place === undefined) return undefined;
  const removal = createRemoval({ ...services, place });
  const previews = createPreviews(place, services);
  const onRemoved = (): void => removal.soon();
  const receiving = { ...services, place, quotas: createQuotas(services), judgeType: createTypeJudge() };
  const documents = new DocumentFiles(receiving);
  const holders = fileHolders(collections);
  return {
    place,
    stage: filesStage({ ...services, holders, onRemoved }),
    paths: filePaths(base, holders),
    documents,
    resources(declared, mac) {
      const linking = { mac, place, base };
      const holding = declared.filter(({ collection }) => collection.files !== undefined);
      const { uploadSeconds } = services.settings;
      const uploads = new UploadServing({ receiving, base, declared: holding, uploadSeconds });
      const resumable: Serving['resumable'] = (...of) => uploads.beginningAt(...of);
      const resumableFields: Serving['resumableFields'] = (part) => uploads.fieldsAt(part);
      return [
        ...holding.flatMap((served) => [
          ...fileResources({ files: documents, place, previews, resumable, resumableFields }, served),
          ...[...(served.collection.files?.values() ?? [])].map((field) =>
            linkResource(linking, { served, field }),
          ),
        ]),
        linkedResource(linking, holding),
        ...uploadResources(uploads),
      ];
    },
    expungerFor: (store) => (document) => expunge(store, [...collections.values()], document),
    start() {
      removal.follow();
      removal.soon();
    },
    async close() {
      await removal.close();
      await previews.close();
      await place.close();
    },
  };
}

/** The document stays as it was deleted, without its files; the stage removes them. Restored, it has none. */
async function expunge(store: Store, collections: readonly Collection[], document: string): Promise<number> {
  let removed = 0;
  for (const { name: table, files } of collections) {
    if (files === undefined) continue;
    removed += await store.lines.change({ table, id: document }, async () => {
      const row = await store.read(table, document);
      if (row === undefined || row.deletedAt === null) return 0;
      const doc = JSON.parse(row.doc) as Record<string, unknown>;
      const count = [...files.keys()].reduce((sum, name) => sum + filesIn(doc[name]).length, 0);
      if (count === 0) return 0;
      for (const name of files.keys()) delete doc[name];
      const { owner, createdAt, updatedAt, deletedAt, rev } = row;
      const next = { owner, createdAt, updatedAt, deletedAt, search: null, references: [] };
      const change = { table, id: document, expect: { rev }, next: { ...next, doc: JSON.stringify(doc) } };
      const commit = await tryCommit(store, { changes: [change], events: [] });
      return commit instanceof Overtaken ? commit : count;
    });
  }
  return removed;
}
