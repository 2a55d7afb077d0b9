/** Database files that are damaged, replaced or shared. */
import '../storage/sqlite-file.test.ts'
import '../storage/sqlite-sharing.test.ts'
