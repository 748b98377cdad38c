/** How often a loop of kills or of races goes round: a few times by default, more in the full tier, as often as is asked in a soak. */
export function roundsOf(short: number, full: number): number {
  const asked = Number(process.env.COMITY_SOAK_ROUNDS ?? '');
  if (asked > 0) return asked;
  return process.env.COMITY_TEST_TIER === 'full' ? full : short;
}
