/**
 * Random units, committed to both stores in the same batches, come to the same outcomes and leave the same rows.
 * test/full/stores/same-commits.test.ts commits others.
 */
import { sameAsSqlite } from './same-as-sqlite.ts';

sameAsSqlite(1);
