/** Limits on content besides its octets (§8), with the defaults of the settings table. */

export type ContentLimits = {
  /** Levels of arrays and objects. */
  readonly jsonDepthMax: number;
  /** Members of one JSON object. */
  readonly jsonMembersMax: number;
  /** Names and values of one form, urlencoded or multipart, files included. */
  readonly formFieldsMax: number;
  /** Octets of one field's value. */
  readonly multipartFieldBytesMax: number;
  /** Header fields of one part. */
  readonly multipartHeaderPairsMax: number;
  /** Octets of one part's header section. */
  readonly multipartHeaderBytesMax: number;
};

export const contentLimitsDefault: ContentLimits = {
  jsonDepthMax: 64,
  jsonMembersMax: 10_000,
  formFieldsMax: 1000,
  multipartFieldBytesMax: 1024 * 1024,
  multipartHeaderPairsMax: 16,
  multipartHeaderBytesMax: 8 * 1024,
};
