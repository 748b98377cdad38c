/** A bucket `files` of s3rver in a folder; prints its URL, and ends with its standard input. Arguments: FOLDER */
import process from 'node:process';
import S3rver from 's3rver';

const server = new S3rver({
  port: 0,
  address: '127.0.0.1',
  silent: true,
  directory: process.argv[2],
  configureBuckets: [{ name: 'files' }],
});
const { port } = await server.run();
process.stdout.write(`http://127.0.0.1:${port}\n`);
process.stdin.resume().on('end', () => process.exit(0));
