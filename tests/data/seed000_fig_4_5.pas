// six batches, thesis-000, Figs 4.5 to 4.7
path = "Example";
B1 = "C1.class";
B2 = "C2.class";
B3 = C3.class;
B4 = "C4.class";
B5 = "C5.class";
B6 = "C6.class";
%%
T1 = B1(1) << NULL;
T2 = B2(4) << T1;
T3 = B3(4) << T1;
T4 = B4(1) << T3;
T5 = B5(1) << T3;
T6 = B6(1) << T2,T4,T5 >> result.dat;
