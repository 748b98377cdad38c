/** Opens the place that the settings name, and says what is wrong with one that several processes cannot share. */
import { join } from 'node:path';
import { filesLocation } from '../config/files-url.ts';
import { ConfigurationError } from '../config/inspection.ts';
import type { Settings } from '../config/settings.ts';
import { createDialer } from '../egress/dial.ts';
import { createEgressPolicy, type OwnListener } from '../egress/policy.ts';
import type { Observe } from '../observe/observation.ts';
import { makeWritableFolder, openFolderPlace } from './folder-place.ts';
import type { Place } from './place.ts';
import type { UploadBounds } from './s3/s3-uploads.ts';

export type PlaceOptions = {
  readonly observe: Observe;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Addresses of this program, where no bucket is. */
  readonly ownListeners: () => readonly OwnListener[];
  /** Replaced in tests only. */
  readonly bounds?: UploadBounds;
};

/** Longest file that is put into a bucket by one request. */
const wholeBytesMax = 64 * 1_048_576;

/** Every address: the operator names the bucket as the database is named, and no client chooses it. */
const everyAddress = '0.0.0.0/0,::/0';

/** @throws ConfigurationError that says what an operator must correct */
export async function openPlace(settings: Settings, options: PlaceOptions): Promise<Place> {
  const { filesUrl, data } = settings;
  const local = join(data, 'files');
  const location = filesUrl === undefined ? undefined : filesLocation(filesUrl);
  if (location?.kind !== 'bucket') return openFolderPlace(location?.folder ?? local);
  const incoming = await makeWritableFolder(join(local, 'incoming'));
  // What sends, signs and reads XML is loaded where there is a bucket.
  const { createOriginRequests } = await import('../egress/origin-requests.ts');
  const { openBucketPlace } = await import('./s3/bucket-place.ts');
  const { BucketRequests } = await import('./s3/s3-requests.ts');
  const requests = new BucketRequests({
    location,
    credential: credentialOf(settings),
    requests: createOriginRequests(requestsTo(location.origin, settings, options.ownListeners)),
    attemptsMax: settings.filesS3AttemptsMax,
    clock: options.clock,
  });
  const { observe, bounds = { wholeBytesMax, partBytesMin: settings.filesS3PartBytesMin } } = options;
  return openBucketPlace({ requests, incoming, observe, bounds });
}

/** A place that is opened when it is needed: opening a folder makes it. */
export type LazyPlace = {
  /** @throws ConfigurationError */
  open(): Promise<Place>;
  close(): Promise<void>;
};

/** The place that the settings name, for a command. */
export function placeOfSettings(settings: Settings): LazyPlace {
  let opened: Promise<Place> | undefined;
  const open = async (): Promise<Place> => {
    const mistake = placeMistake(settings);
    if (mistake !== undefined) throw new ConfigurationError([mistake]);
    const nothing = (): void => undefined;
    return openPlace(settings, { observe: nothing, clock: Date.now, ownListeners: () => [] });
  };
  return {
    open() {
      opened ??= open();
      return opened;
    },
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}

/**
 * Why files cannot be kept where the settings say, as a sentence: processes on one database need a place that each of them reaches. Asked
 * where a collection has files.
 */
export function placeMistake({
  databaseUrl,
  filesUrl,
}: Pick<Settings, 'databaseUrl' | 'filesUrl'>): string | undefined {
  if (databaseUrl === undefined || filesUrl !== undefined) return undefined;
  return (
    'COMITY_DATABASE_URL keeps documents where any number of processes share them, and their files must be there too: set COMITY_FILES_URL ' +
    'to a folder that all of them see, such as file:///srv/files, or to a bucket, such as s3://files?region=eu-central-1'
  );
}

function requestsTo(origin: string, settings: Settings, ownListeners: () => readonly OwnListener[]) {
  const policy = createEgressPolicy({
    egressAllow: everyAddress,
    egressPorts: '',
    everyPort: true,
    ownListeners,
  });
  return {
    dial: createDialer({ ...settings, policy }),
    origin,
    connectionsMax: settings.filesS3ConnectionsMax,
    idleMs: settings.egressIdleMs,
    headBytesMax: settings.egressHeadBytesMax,
    stallMs: settings.filesS3TimeoutMs,
  };
}

function credentialOf({ filesS3AccessKey, filesS3SecretKey, filesS3SessionToken }: Settings) {
  if (filesS3AccessKey === undefined || filesS3SecretKey === undefined) {
    throw new Error('the settings of a bucket were loaded without its credential');
  }
  return { accessKey: filesS3AccessKey, secretKey: filesS3SecretKey, sessionToken: filesS3SessionToken };
}
