// thesis-000, F4
path = "PIMonteCarlo";
B1 = "DistributeData.class";
B2 = "ProcessData.class";
B3 = "GatherResults.class";
%%
T1 = B1(1)   << NULL;
T2 = B2(100) << T1;
T3 = B3(1)   << T2;
