/** Settings of PostgreSQL as the store; without `databaseUrl` the embedded one is used and the rest says nothing. */
import { refuseDatabaseUrl, refuseSchema } from '../refusals.ts';
import { integer, section, text } from '../setting.ts';

export const postgresSettings = section('PostgreSQL', {
  databaseUrl: text(
    undefined,
    { secret: true, refuse: refuseDatabaseUrl },
    'A `postgres://` URL keeps the data in that database instead of the folder `data`; any number of processes may share it.',
  ),
  databaseSchema: text(
    'comity',
    { charactersMax: 63, refuse: refuseSchema },
    'Schema of the database that holds every table of the program; made when missing.',
  ),
  databaseConnectTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 600_000 },
    'Time for a connection to the database to be made.',
  ),
  databaseTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 600_000 },
    'Time for the database to answer a read by id, a page or a commit; then 503. Scans have `scanTimeoutMs`.',
  ),
  databaseReadConnections: integer(
    { unit: 'connections', default: 2, least: 1, most: 64 },
    'Connections for reads whose cost does not grow; each carries any number of reads at once.',
  ),
  databaseScanConnections: integer(
    { unit: 'connections', default: 4, least: 1, most: 256 },
    'Connections for reads whose cost grows with the collection, one at a time on each.',
  ),
  databasePollMs: integer(
    { unit: 'ms', default: 1000, least: 10, most: 600_000 },
    'Time between two looks at what other processes changed, besides being notified; the only way where the connection cannot LISTEN.',
  ),
});
