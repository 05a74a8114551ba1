"""What launchers print of jobs that cannot start or are ended.

Open MPI 5.0.11 and 4.1.4, MPICH 5.0.2, Intel MPI 2021.18, Slurm 22.05, OpenSSH.
"""

RULE = "-" * 74
END = f"{RULE}\n\0"  # PRRTE ends its messages so

SLOTS = f"""{RULE}
There are not enough slots available in the system to satisfy the 3
slots that were requested by the application:

  hostname

Either request fewer procs for your application, or make more slots
available for use.

Alternatively, you can use the --map-by :OVERSUBSCRIBE option to ignore the
number of available slots when deciding the number of processes to
launch.
{END}"""
OVERLOAD = f"""{RULE}
A request was made to bind that would require binding
processes to more cpus than are available in your allocation:

   Application:     hostname
   #processes:      4
   Mapping policy:  BYCORE
   Binding policy:  CORE

You can override this protection by adding the "overload-allowed"
option to your binding directive.
{END}"""
NOT_ALLOCATED = f"""sh: 1: srun: not found
{RULE}
At least one of the requested hosts is not included in the current
allocation.

   Missing requested host: n7

Please check your allocation or your request.
{END}"""
FILLED = f"""{RULE}
All nodes which are allocated for this job are already filled.
{END}"""
DAEMON = """------------------------------------------------------------
A daemon failed to report back after being spawned. This could
be due to several factors, including inability to find the
daemon executable, or the executable was unable to find its
required supporting libraries. In some cases, the daemon was
able to execute, but was unable to complete a TCP connection
back to prterun:

  Local host:    vm
  Remote host:   n7
  Daemon exit status: 255

This may also be caused by a firewall on the remote host. Please
check that any firewall (e.g., iptables) has been disabled and
try again.
------------------------------------------------------------
"""
WARNING = "[vm:20777] plm:ssh: Warning: setpgid(20780,20780) failed in parent with errno=13\n"
UNRESOLVED = f"{WARNING}ssh: Could not resolve hostname n7: Name or service not known\r\n{DAEMON}"
UNREACHED = f"ssh: connect to host 127.0.0.9 port 22: Connection refused\r\n{DAEMON}"
NO_PROGRAM = f"""{RULE}
prterun was unable to launch the specified application as it could not
access an executable:

   Executable: /no/such/python
   Node: vm

while attempting to start process rank 0.
{RULE}
"""
NO_SLOT = f"""{RULE}
While parsing the rankfile, prterun encountered a line that specified
a non-existent CPU:

  Slots: 7
  Available CPUs: package[0][core:L0-1]

Please correct the line and try again.
{END}"""
HOST_LINE = f"""{RULE}
PRTE detected a parse error in the hostfile:

   /dev/fd/63

It occured on line number 1 on token 3.
{END}"""
TWICE = f"""{RULE}
A hostfile was provided that contains multiple definitions of the slot
count for at least one node:

   hostfile:  /tmp/h
   node:      vm

You can either list a node multiple times, once for each slot, or you
can provide a single line that contains "slot=N". Mixing the two
is not supported.
{END}"""
UNKNOWN = f"""{RULE}
The mapping request contains an unrecognized qualifier:

  Request: rankfile:file=/tmp/a:b/rf

Please check your request and try again. Remember, multiple
qualifiers must be separated by a colon (':').
{END}"""
DISCONNECTED = f"""{RULE}
An MPI communication peer process has unexpectedly disconnected.  This
usually indicates a failure in the peer process (e.g., a crash or
otherwise exiting without calling MPI_FINALIZE first).

  Local host: n1
  Local PID:  21856
  Peer host:  n2
{END}[n1:00000] *** An error occurred in Socket closed
[n1:00000] *** reported by process [3804561409,0]
[n1:00000] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
[n1:00000] ***    and MPI will try to terminate your MPI job as well)
{RULE}
prterun has exited due to process rank 0 with PID 21856 on node n1 calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
{END}"""
BEREAVED = """\
[n1:00000] *** An error occurred in Socket closed
[n1:00000] *** reported by process [731774977,1]
[n1:00000] *** on a NULL communicator
[n1:00000] *** Unknown error
"""
KILLED = f"""
{RULE}
prterun noticed that process rank 1 with PID 27565 on node vm exited on
signal 9 (Killed).
{RULE}
"""
MPICH = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 2 PID 77 RUNNING AT node7
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
"""
MPICH_5 = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 24435 RUNNING AT node7
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
MPICH_5_CODE = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4711 RUNNING AT n3
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
"""
INTEL = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 0 PID 311 RUNNING AT n1
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 312 RUNNING AT n3
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
"""
INTEL_PROXY = """\
[mpiexec@head] check_exit_codes (../../../../../src/pm/i_hydra/libhydra/demux/hydra_demux_poll.c:117): unable to run bstrap_proxy on n7 (pid 12345, exit code 65280)
[mpiexec@head] Error setting up the bootstrap proxies
"""  # noqa: E501
SRUN_KILLED = """\
srun: error: n3: task 5: Killed
srun: Terminating StepId=7.0
slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-23T10:00:00 ***
srun: error: n1: tasks 0-1: Terminated
"""
SRUN_MEMORY = """\
slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.
srun: error: n3: task 5: Killed
"""
SRUN_PROCESSORS = "srun: error: Unable to create step for job 7: More processors requested than permitted\n"
SRUN_NODES = "srun: error: Unable to create step for job 7: Requested node configuration is not available\n"
NO_FOLDER = f"""{RULE}
prterun was unable to launch the specified application as it could not
change to the specified working directory:

Working directory: /tmp/here
Node: n2

while attempting to start process rank 0.
{RULE}
"""
MPICH_FOLDER = """\
[proxy:1@n2] launch_procs (proxy/pmip_cb.c:869): unable to change wdir to /tmp/here (No such file or directory)
"""  # noqa: E501
PMIX = """\
Abort(680650255): Fatal error in internal_Init_thread: Other MPI error, error stack:
MPII_PMI_init(37)...........: unsupported PMI version PMIx
"""
OPEN_MPI_4_SRUN = f"""{RULE}
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot
execute. There are several options for building PMI support under
SLURM, depending upon the SLURM version you are using:
{RULE}
"""
NO_PLUGIN = """\
srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files
srun: error: cannot find mpi plugin for mpi/pmix
srun: error: MPI: Cannot create context for mpi/pmix
"""
MPICH_SLOTS = """\
[mpiexec@vm] HYDU_process_mfile_token (/mpich-5.0.2/src/pm/hydra/lib/utils/args.c:301): token slots not supported at this time
[mpiexec@vm] HYDU_parse_hostfile (/mpich-5.0.2/src/pm/hydra/lib/utils/args.c:345): unable to process token
[mpiexec@vm] main (/mpich-5.0.2/src/pm/hydra/mpiexec/mpiexec.c:49): error parsing parameters
"""  # noqa: E501
MPICH_PROGRAM = """\
[proxy:0@vm] HYDU_create_process (/mpich-5.0.2/src/pm/hydra/lib/utils/launch.c:73): execvp error on file /no/such (No such file or directory)
"""  # noqa: E501
