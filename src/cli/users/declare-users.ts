/** Declares the subcommands of `comity users`, whose code is loaded when one is called. */
import type { Command } from 'commander';
import type { Finish } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerArguments } from '../server-client.ts';
import { type Given, listItemsMax, withServer } from '../server-options.ts';
import type { Terminal } from '../terminal.ts';
import type {
  CreateArguments,
  DeleteArguments,
  ListArguments,
  SetPasswordArguments,
  SetRolesArguments,
} from './user-commands.ts';

const accountHelp = 'id or e-mail address';
const fieldHelp = 'fields of the application; name:=value takes JSON, such as level:=3';
const passwordHelp = 'read the password from stdin instead of generating one';

export function declareUsers(program: Command, terminal: Terminal, finish: Finish): void {
  const users = program
    .command('users')
    .description('create, change and delete accounts on a running server')
    .addHelpText('after', '\nUses the administrator key in COMITY_ADMIN_KEY.');
  declareReading(users, terminal, finish);
  declareMaking(users, terminal, finish);
  declareState(users, terminal, finish);
  declareFields(users, terminal, finish);
  declareRemoval(users, terminal, finish);
}

function declareReading(users: Command, terminal: Terminal, finish: Finish): void {
  withServer(users.command('list'))
    .description('list accounts, the newest first')
    .option('--search <words>', 'only those whose e-mail address or name contains the words')
    .option('--limit <number>', 'how many at most', wholeNumber(1, listItemsMax), 100)
    .action(async ({ json = false, ...options }: Given<ListArguments>) => {
      const { listUsers } = await import('./user-commands.ts');
      finish(await listUsers(terminal, options, json));
    });
  withServer(users.command('show'))
    .description('show one account')
    .argument('<account>', accountHelp)
    .action(async (name: string, { json = false, ...options }: Given<ServerArguments>) => {
      const { showUser } = await import('./user-commands.ts');
      finish(await showUser(terminal, name, options, json));
    });
}

function declareMaking(users: Command, terminal: Terminal, finish: Finish): void {
  withServer(users.command('create'))
    .description('create an account, with a password that is shown once')
    .argument('<email>', 'its e-mail address')
    .option('--name <name>', 'its display name')
    .option('--role <role...>', 'roles; "administrator" may do everything')
    .option('--scope <scope...>', 'scopes (read write)')
    .option('--tenant <tenant>', 'the tenant that it belongs to')
    .option('--field <name=value...>', fieldHelp)
    .option('--password-stdin', passwordHelp)
    .option('--no-password', 'no password: log in only by a mailed code or a provider')
    .action(async (email: string, { json = false, ...options }: Given<CreateArguments>) => {
      const { createUser } = await import('./user-commands.ts');
      finish(await createUser(terminal, email, options, json));
    });
  withServer(users.command('set-password'))
    .description('set a new password, which ends every session of the account')
    .argument('<account>', accountHelp)
    .option('--password-stdin', passwordHelp)
    .action(async (name: string, { json = false, ...options }: Given<SetPasswordArguments>) => {
      const { setUserPassword } = await import('./user-commands.ts');
      finish(await setUserPassword(terminal, name, options, json));
    });
}

function declareState(users: Command, terminal: Terminal, finish: Finish): void {
  for (const [command, disabled, description] of [
    ['disable', true, 'refuse every credential of an account from now on'],
    ['enable', false, 'accept the password and the keys of an account again'],
  ] as const) {
    withServer(users.command(command))
      .description(description)
      .argument('<account>', accountHelp)
      .action(async (name: string, { json = false, ...options }: Given<ServerArguments>) => {
        const { setUserDisabled } = await import('./user-commands.ts');
        finish(await setUserDisabled(terminal, name, disabled, options, json));
      });
  }
  withServer(users.command('set-roles'))
    .description('replace the roles of an account')
    .argument('<account>', accountHelp)
    .argument('[roles...]', 'such as "administrator" and those that access rules name')
    .option('--none', 'remove all roles')
    .action(
      async (
        name: string,
        roles: readonly string[],
        { json = false, ...options }: Given<SetRolesArguments>,
      ) => {
        const { setUserRoles } = await import('./user-commands.ts');
        finish(await setUserRoles(terminal, name, roles, options, json));
      },
    );
}

function declareFields(users: Command, terminal: Terminal, finish: Finish): void {
  withServer(users.command('set-fields'))
    .description('change fields of the application; name:=null removes one')
    .argument('<account>', accountHelp)
    .argument('<fields...>', 'such as organisationId=lighthouse level:=3')
    .action(
      async (
        name: string,
        fields: readonly string[],
        { json = false, ...options }: Given<ServerArguments>,
      ) => {
        const { setUserFields } = await import('./user-commands.ts');
        finish(await setUserFields(terminal, name, fields, options, json));
      },
    );
}

function declareRemoval(users: Command, terminal: Terminal, finish: Finish): void {
  withServer(users.command('delete'))
    .description('delete an account with its password, sessions and keys')
    .argument('<account>', accountHelp)
    .option('--yes', 'do not ask for confirmation; without a terminal it never asks')
    .action(async (name: string, { json = false, ...options }: Given<DeleteArguments>) => {
      const { deleteUser } = await import('./user-commands.ts');
      finish(await deleteUser(terminal, name, options, json));
    });
  withServer(users.command('reset-second-factor'))
    .description('remove the second factor of an account, which ends every session of it')
    .argument('<account>', accountHelp)
    .option('--yes', 'do not ask for confirmation; without a terminal it never asks')
    .action(async (name: string, { json = false, ...options }: Given<DeleteArguments>) => {
      const { resetSecondFactor } = await import('./user-commands.ts');
      finish(await resetSecondFactor(terminal, name, options, json));
    });
}
