/** The contract of every place over buckets of stores that know less than AWS, or of which more is asked. */
import { bucketContract } from '../../files/open-bucket.ts';

bucketContract(
  'bucket with a prefix and a temporary credential',
  { credential: { accessKey: 'A', secretKey: 'b+/', sessionToken: 'token/+=' } },
  '/comity/files',
);
bucketContract('bucket of a store that knows no checksums', { checksums: false, listsUploads: false });
bucketContract('bucket whose tags are no digests', { checksums: false, md5Tags: false });
bucketContract('bucket of a store that refuses checksums', { checksums: 'refused' });
