/** The secrets that senders have: each verifies what comes, and one that is forwarded has others that sign what goes. */
import type { DeclaredSender } from '../senders.ts';

export type SecretUse = { readonly name: string; readonly use: 'receive' | 'forward' };

export type SecretPlace = SecretUse & { readonly sender: DeclaredSender; readonly variable: string };

/** Every secret that the senders need, in the order of their declaration. */
export function secretPlaces(senders: Iterable<DeclaredSender>): readonly SecretPlace[] {
  return [...senders].flatMap((sender) => {
    const { name, secretVariable, handOn } = sender;
    const receive = { sender, name, use: 'receive', variable: secretVariable } as const;
    if (handOn.kind !== 'forward') return [receive];
    return [receive, { sender, name, use: 'forward', variable: handOn.secretVariable } as const];
  });
}
