/**
 * Which hosts a tunnel may lead to (§4.10): a list of those that are let through, a list of those that are not, and whether that is
 * enforced or only reported. Names are compared as they are asked for, in lower case and without a last dot; what they resolve to is judged
 * by the egress guard, whatever stands here.
 */

export type HostRules = {
  /** `report`: what would be refused is let through and logged. */
  readonly mode: 'enforce' | 'report';
  /** Globs; null: every host. */
  readonly allow: readonly string[] | null;
  /** Globs; outranks `allow`. */
  readonly deny: readonly string[];
};
