"""Monte-Carlo pi in restricted Python: the kernels of App. A; never run, only analysed."""

number_tasks = 100
iteration_size = 10_000_000
BYTES = {"ProcessData": {"in": 4, "out": 4, "code": 879}}


def DistributeData(nothing: int):
    data: "int[100]" = 0
    for i in range(number_tasks):
        data[i] = iteration_size
    return data


def ProcessData(bound: "int[1]"):
    total: int = 0
    for i in range(iteration_size):
        x: double = random()
        y: double = random()
        if x * x + y * y < 1:
            total += 1
    return total


def GatherResults(results: "int[100]"):
    total: int = 0
    for i in range(number_tasks):
        total = total + results[i]
    pi: double = 4.0 * total / (number_tasks * iteration_size)
    return pi
