/**
 * The stage of a commit that keeps the generation of the endpoints up to date (fan-out/generation.ts): in a unit with a
 * change of the generation, it replaces that change by the one that is right at the commit. So a race with another
 * endpoint causes no conflict and no failed If-Match.
 *
 * The units of one process wait for each other in one line, because one of two concurrent ones would be superseded.
 * When the commit resolves, this process sends accordingly; other processes do as soon as the store notifies them.
 */
import { type CommitStage, type CommitUnit, commitAdding } from '../../../store/commit-stages.ts';
import type { Change, ChangeLines, Commit, Unit } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { endpointGenerationTable, generationLine } from '../sending-tables.ts';

export function generationStage(
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  lines: Pick<ChangeLines, 'hold'>,
): CommitStage {
  return (unit, commit) => {
    if (!unit.changes.some(isGeneration)) return commit(unit);
    return lines.hold(generationLine, false, (checkTime) => commitNext(unit, commit, directory, checkTime));
  };
}

async function commitNext(
  { changes, events }: Unit,
  commit: CommitUnit,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  checkTime: () => void,
): Promise<Commit> {
  const own = [...changes.entries()].filter(([, change]) => !isGeneration(change));
  const unit = { changes: own.map(([, change]) => change), events };
  for (;;) {
    checkTime();
    const result = await commitAdding(unit, directory.generationChanges(unit.changes), commit);
    if (result.outcome === 'added-refused') {
      await directory.refresh();
      continue;
    }
    if (result.outcome === 'committed') {
      await inForce(directory);
      return result;
    }
    const { change } = result;
    return { ...result, change: own[change]?.[0] ?? change - own.length + changes.length };
  }
}

/**
 * Waits until this process has read the change. A failure is ignored: the change is committed, and the directory
 * repeats the read itself.
 */
async function inForce(directory: Pick<EndpointDirectory, 'refresh'>): Promise<void> {
  await directory.refresh().catch(() => {
    // The caller must get its response: there is no other way to learn a new secret.
  });
}

function isGeneration({ table }: Change): boolean {
  return table === endpointGenerationTable;
}
