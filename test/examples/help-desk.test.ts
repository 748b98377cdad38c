/** The test file of the help desk, which its readers run by itself. */
import '../../examples/help-desk/desk.test.ts';
