/** A place over the strict double of a bucket, as the settings open it; no tests. */
import { loadSettings } from '../../src/config/load-settings.ts';
import { openPlace } from '../../src/files/open-place.ts';
import type { Place } from '../../src/files/place.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { type S3DoubleOptions, startS3Double } from '../harness/s3-double.ts';
import type { S3Credential } from '../harness/s3-signature.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { placeContract } from './place-contract.ts';

const MiB = 1_048_576;

/** The smallest parts that S3 permits, so that short files have several. */
export const shortBounds = { wholeBytesMax: 6 * MiB, partBytesMin: 5 * MiB };

export type OpenedBucket = {
  readonly place: Place;
  /** What was observed, oldest first. */
  readonly observed: readonly Observation[];
};

type BucketRules = {
  readonly filesUrl: string;
  readonly credential: S3Credential;
  readonly timeoutMs?: number;
  readonly connectionsMax?: number;
  readonly clock?: () => number;
};

export async function openBucket({ filesUrl, credential, ...rules }: BucketRules): Promise<OpenedBucket> {
  const { settings } = loadSettings(
    {
      COMITY_FILES_URL: filesUrl,
      COMITY_FILES_S3_ACCESS_KEY: credential.accessKey,
      COMITY_FILES_S3_SECRET_KEY: credential.secretKey,
      COMITY_FILES_S3_SESSION_TOKEN: credential.sessionToken,
      COMITY_DATA: temporaryFolder(),
    },
    { filesS3TimeoutMs: rules.timeoutMs, filesS3ConnectionsMax: rules.connectionsMax },
  );
  const observed: Observation[] = [];
  const place = await openPlace(settings, {
    observe: (observation) => observed.push(observation),
    clock: rules.clock ?? Date.now,
    ownListeners: () => [],
    bounds: shortBounds,
  });
  return { place, observed };
}

/** The contract of every place over a double of its own. */
export function bucketContract(name: string, options: S3DoubleOptions, prefix = ''): void {
  placeContract(
    name,
    async () => {
      const double = await startS3Double(options);
      const { credential } = double;
      const { place } = await openBucket({ filesUrl: double.filesUrl(prefix), credential });
      return {
        place,
        async dispose() {
          await place.close();
          await double.close();
        },
      };
    },
    11 * MiB + 17,
  );
}
