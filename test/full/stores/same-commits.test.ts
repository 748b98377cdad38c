/** Random units, committed to both stores in the same batches: more of what test/postgres/commit/same-as-sqlite.test.ts shows. */
import { sameAsSqlite } from '../../postgres/commit/same-as-sqlite.ts';

for (const seed of [2, 3]) sameAsSqlite(seed);
