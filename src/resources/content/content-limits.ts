/** The bounds on content besides its octets (§8), with the defaults that the settings table starts from. */

export type ContentLimits = {
  /** Levels of arrays and objects in JSON. */
  readonly jsonDepthMax: number;
  /** Members in one JSON object. */
  readonly jsonMembersMax: number;
  /** Names and values in one form, urlencoded or multipart, files included. */
  readonly formFieldsMax: number;
  /** Octets in the value of one multipart field. */
  readonly multipartFieldBytesMax: number;
  /** Header fields in one part. */
  readonly multipartHeaderPairsMax: number;
  /** Octets in the header section of one part. */
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
